"""Run candidate kernels in Triton's interpreter and compare them with PyTorch; one process for all.

Reads a JSON list of {"name", "path", "operator", "shapes", "strided"} from standard input and
writes {name: largest error relative to the reference's scale, or the exception} to standard output.
Operands are float16: Triton 3.9's interpreter multiplies the bits of bfloat16.
"""

import importlib.util
import json
import sys
import traceback

import torch

REFERENCES = {
    "gemm": lambda a, b: a.float() @ b.float(),
    "linear": lambda x, w, bias: torch.relu(x.float() @ w.float() + bias.float()),
    "scores": lambda q, k: 0.125 * (q.float() @ k.float()),
    "softmax": lambda x: torch.softmax(x.float(), -1),
    "softmax_temperature": lambda x: torch.softmax(x.float() * 0.7, -1),
    "log_softmax": lambda x: torch.log_softmax(x.float(), -1),
    "rms_norm": lambda x, w: (
        x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()
    ),
}


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def error(module, operator, shapes, strided):
    generator = torch.Generator().manual_seed(7)
    inputs = [torch.randn(shape, generator=generator).half() for shape in shapes]
    if strided:  # matrices as every other column of wider ones
        inputs = [x.repeat_interleave(2, -1)[:, ::2] if x.dim() == 2 else x for x in inputs]
    wanted = REFERENCES[operator](*inputs)
    got = getattr(module, operator)(*inputs).float()
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    return ((got - wanted).abs().max() / wanted.abs().max()).item()


def main():
    answers = {}
    for number, job in enumerate(json.load(sys.stdin)):
        try:
            module = load(f"candidate_{number}", job["path"])
            errors = [error(module, job["operator"], s, job["strided"]) for s in job["shapes"]]
            answers[job["name"]] = max(errors)
        except Exception:
            answers[job["name"]] = traceback.format_exc()
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
