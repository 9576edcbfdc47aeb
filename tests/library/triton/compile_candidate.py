"""Compile candidates for sm_90a without a GPU; one process for all.

Reads a JSON list of {"name", "path", "kernel", "constants", "descriptors", "unaligned"} and writes
{name: {"ptx": counts by pattern, "shared": bytes}}. Pointers are bf16 and aligned; integers are
divisible by 16 unless named in "unaligned"; strides along rows are 1.
"""

import importlib.util
import json
import re
import sys
import warnings

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

PATTERNS = {
    "wgmma": r"wgmma\.mma_async",
    "tma": r"cp\.async\.bulk\.tensor",
    "cp_async": r"cp\.async\.cg",
    "vector_loads": r"ld\.global\.\S*v4\.b32|ld\.global\.v4",
    "scalar_loads": r"ld\.global\.b16",
    "evict_first": r"evict_first",
}


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def compiled(job, number):
    kernel = getattr(load(f"candidate_{number}", job["path"]), job["kernel"])
    while not hasattr(kernel, "params"):  # heuristics and autotuners wrap the kernel
        kernel = kernel.fn
    signature, constants, attributes = {}, {}, {}
    for index, parameter in enumerate(kernel.params):
        name = parameter.name
        if name in job["descriptors"]:
            signature[name] = f"tensordesc<bf16{job['descriptors'][name]}>"
        elif parameter.is_constexpr or name in job["constants"]:
            signature[name] = "constexpr"
            constants[(index,)] = job["constants"].get(name)
        elif name.endswith("_ptr"):
            signature[name] = "*bf16"
            attributes[(index,)] = [["tt.divisibility", 16]]
        else:
            signature[name] = "i32"
            if name not in job["unaligned"]:
                attributes[(index,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=job["options"])


def main():
    warnings.simplefilter("ignore")
    answers = {}
    for number, job in enumerate(json.load(sys.stdin)):
        binary = compiled(job, number)
        counts = {name: len(re.findall(p, binary.asm["ptx"])) for name, p in PATTERNS.items()}
        answers[job["name"]] = {**counts, "shared": binary.metadata.shared}
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
