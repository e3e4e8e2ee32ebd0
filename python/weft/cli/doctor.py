"""`weft doctor`: what works on this machine, and what to install for the rest."""

from __future__ import annotations

import json as json_

from weft.cli import options


def doctor(json: options.Json = False) -> int:
    """Say what of Weft works on this machine, and what to install for the rest.

    Only the simulator is needed to simulate, compare and plan; each other line says what needs it.
    """
    from weft import doctor
    from weft.report import text_table

    found = doctor.findings()
    if json:
        print(json_.dumps([one.as_dict() for one in found], indent=1))
        return 0
    marks = {"works": "works", "missing": "-"}
    rows = [[one.part, marks[one.state], one.found] for one in found]
    print("\n".join(text_table.aligned(rows)))
    lacking = [one for one in found if one.remedy]
    if lacking:
        print("\nFor what is missing:")
        print("\n".join(text_table.aligned([[f"  {one.use}", one.remedy] for one in lacking])))
    return 0
