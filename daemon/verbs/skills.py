"""klineage skills list | show | why: the library, and why a skill is or is not offered."""

from __future__ import annotations

import argparse
import json

from daemon.protocol import Skills, SkillShown, SkillsList, SkillsShow, SkillsWhy, Why
from daemon.verbs import shared_options
from daemon.verbs.connection import ask
from daemon.verbs.detect import absolute
from daemon.verbs.failure import DONE, NEGATIVE
from daemon.verbs.output import condition_lines, print_json, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Three verbs of its own."""
    verbs = parser.add_subparsers(metavar="WHAT", required=True)
    listing = verbs.add_parser("list", help="every skill", parents=[shared_options()])
    listing.add_argument("--language", default="", help="only this surface language")
    listing.set_defaults(what=_list)
    show = verbs.add_parser("show", help="one skill, whole", parents=[shared_options()])
    show.add_argument("skill", help="skill id, or a digest prefix of 6 digits or more")
    show.set_defaults(what=_show)
    why = verbs.add_parser("why", help="presence or absence, explained", parents=[shared_options()])
    why.add_argument("skill")
    why.add_argument("kernel", help="FILE or FILE::kernel")
    why.set_defaults(what=_why)


def run(options: argparse.Namespace) -> int:
    """Dispatch to the verb that was named."""
    status: int = options.what(options)
    return status


def _list(options: argparse.Namespace) -> int:
    skills = ask(options, "skills.list", SkillsList(options.language), Skills).skills
    if options.json:
        print_json(skills)
        return DONE
    rows = [
        (
            s.skill_id,
            s.digest[:8],
            s.status,
            s.place,
            ",".join(s.platforms),
            s.gains or "no trial",
            s.intent,
        )
        for s in skills
    ]
    print(table(rows))
    return DONE


def _show(options: argparse.Namespace) -> int:
    shown = ask(options, "skills.show", SkillsShow(options.skill), SkillShown)
    if options.json:
        print_json(
            {
                "skill": shown.skill,
                "card": json.loads(shown.card_json),
                "trials": [json.loads(trial) for trial in shown.trials_json],
            }
        )
        return DONE
    skill = shown.skill
    print(f"{skill.skill_id}  {skill.digest}")
    print(f"{skill.status}; {skill.place}; {skill.trials} trials; {skill.gains or 'gain unknown'}")
    print(f"{skill.path}\n\n{shown.body.strip()}")
    return DONE


def _why(options: argparse.Namespace) -> int:
    file, separator, entry = options.kernel.partition("::")
    kernel = absolute(file) + separator + entry
    why = ask(options, "skills.why", SkillsWhy(options.skill, kernel), Why).why
    if options.json:
        print_json(why)
    else:
        # A condition's own line is said below, with its text.
        ids = tuple(f"{condition.id}:" for condition in why.conditions)
        general = [line for line in why.lines if not line[9:].startswith(ids)]
        for line in (*general, *condition_lines(why.conditions)):
            print(f"  {line}")
    return DONE if why.answer == "applies" else NEGATIVE
