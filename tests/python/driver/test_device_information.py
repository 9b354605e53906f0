"""What `bascule.Device` says of a device: attributes of the driver API by name, memory, and the compute capability."""

from __future__ import annotations

import ctypes
import re
import sys
import textwrap
from pathlib import Path

import pytest
from child_process import printed_by

import bascule

DRIVER = ctypes.CDLL(bascule._bascule._driver_info()["path"])


def asked(number: int) -> int:
    value = ctypes.c_int()
    assert DRIVER.cuDeviceGetAttribute(ctypes.byref(value), number, bascule.current_device().ordinal) == 0
    return value.value


def test_attributes_are_what_the_driver_says():
    device = bascule.current_device()
    # Numbers from the list of CUdevice_attribute in the CUDA driver API's reference.
    numbers = {"max_threads_per_block": 1, "warp_size": 10, "clock_rate": 13, "multiprocessor_count": 16}
    numbers |= {"memory_clock_rate": 36, "global_memory_bus_width": 37, "l2_cache_size": 38, "cluster_launch": 120}
    attributes = device.attributes
    for name, number in numbers.items():
        assert attributes[name] == device.attribute(name) == asked(number), name
    assert device.multiprocessors == attributes["multiprocessor_count"]
    assert device.compute_capability == (asked(75), asked(76))


def test_the_names_are_those_of_the_header():
    header = next(Path(sys.prefix).glob("lib/python*/site-packages/nvidia/cu13/include/cuda.h")).read_text()
    wanted: dict[int, set[str]] = {}
    for name, number in re.findall(r"CU_DEVICE_ATTRIBUTE_(\w+) *= *(\d+)", header):
        wanted.setdefault(int(number), set()).add(name.lower())
    # A driver of this version knows all of them, and the dict is in the order of their numbers.
    program = "import bascule; print(*bascule.current_device().attributes)"
    names = printed_by("-c", program, BASCULE_DEVICE="emulated", BASCULE_EMULATED_DRIVER="13.9").split()
    assert sorted(wanted) == list(range(1, len(names) + 1))
    assert [name for number, name in enumerate(names, 1) if name not in wanted[number]] == []


def test_an_unknown_attribute_is_refused_with_the_nearest_name():
    with pytest.raises(bascule.ArgumentKeyError, match="no attribute 'warp_sise'. Did you mean 'warp_size'"):
        bascule.current_device().attribute("warp_sise")


@pytest.mark.parametrize(
    ("version", "count"),
    # The counts are those of <cuda.h> in these versions.
    [
        ("12.0", 128),
        ("12.1", 129),
        ("12.2", 132),
        ("12.3", 134),
        ("12.5", 135),
        ("12.8", 140),
        ("12.9", 143),
        ("13.1", 148),
        ("13.3", 154),
        ("13.5", 161),
    ],
)
def test_attributes_that_are_newer_than_the_driver_are_absent(version, count):
    program = """
    import bascule
    device = bascule.current_device()
    print(len(device.attributes))
    try:
        device.attribute("tensor_map_large_tensor_min_size")
    except bascule.ArgumentNotImplementedError as error:
        print(error)
    """
    told = printed_by(
        "-c", textwrap.dedent(program), BASCULE_DEVICE="emulated", BASCULE_EMULATED_DRIVER=version
    ).splitlines()
    unknown = f"the driver, of CUDA {version}, does not know the attribute 'tensor_map_large_tensor_min_size'"
    assert told == [str(count)] + [f"{unknown}. A newer driver does."] * (version != "13.5")


def test_attributes_of_the_emulated_device_follow_its_architecture():
    program = """
    import bascule
    device = bascule.current_device()
    print(device.compute_capability, device.attribute("tensor_map_access_supported"))
    """
    told = {
        arch: printed_by("-c", textwrap.dedent(program), BASCULE_DEVICE="emulated", BASCULE_EMULATED_ARCH=arch).strip()
        for arch in ("75", "90a")
    }
    assert told == {"75": "(7, 5) 0", "90a": "(9, 0) 1"}


def test_free_memory_shrinks_by_an_allocation():
    device = bascule.current_device()
    before = device.free_memory
    assert 0 < before <= device.total_memory
    kept = bascule.device_array(64 << 20, "u1", shareable=True)  # an allocation of its own, not from the pool
    assert device.free_memory <= before - kept.nbytes


def test_the_place_on_the_bus_has_the_form_of_nvidia_smi():
    assert re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.0", bascule.current_device().pci_bus_id)
