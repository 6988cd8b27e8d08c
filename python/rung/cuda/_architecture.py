# SPDX-License-Identifier: Apache-2.0
"""Target architecture of a kernel string, from nvcc's options."""
import re
from typing import List, Sequence, Tuple

DEVICE = 90  # compute capability 9.0, of the simulated GPU
_KNOWN = (60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)


def capability_of(word: str) -> int:
    """Returns 70 for "sm_70" or "compute_70". Raises ValueError if the simulated GPU does not run this architecture."""
    found = re.fullmatch(r"(?:sm|compute|lto)_(\d+)[af]?", word)
    if word == "native":
        return DEVICE
    if found is None or int(found.group(1)) not in _KNOWN:
        raise ValueError(f"architecture: given {word!r}, accepted are sm_{_KNOWN[0]} to sm_{DEVICE} and "
                         f"compute_{_KNOWN[0]} to compute_{DEVICE}: the simulated GPU has compute capability "
                         f"{DEVICE // 10}.{DEVICE % 10}")
    return int(found.group(1))


def _of_gencode(words: Sequence[str]) -> int:
    """Returns the highest architecture that the device runs, as a device chooses from the code in a program."""
    capabilities = []
    for word in words:
        for one in re.findall(r"\barch=([^,]*)", word) or [word]:
            try:
                capabilities.append(capability_of(one))
            except ValueError:
                refused = one
    return max(capabilities) if capabilities else capability_of(refused)


def split_options(options: Sequence[str]) -> Tuple[List[str], int]:
    """Returns the options without those that name an architecture, and the compute capability named."""
    rest: List[str] = []
    gencode: List[str] = []
    capability = 0
    words = iter(options)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in ("-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code"):
            rest.append(word)
            continue
        value = value if equals else next(words, "")
        if name in ("-gencode", "--generate-code"):
            gencode.append(value)
        elif name in ("-arch", "--gpu-architecture"):
            capability = capability_of(value)
        else:
            for one in re.split(r"[\[\],]+", value.strip("[]")):
                capability_of(one)
    return rest, capability or (_of_gencode(gencode) if gencode else DEVICE)
