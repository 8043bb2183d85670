"""What /proc and /sys of the phone show now; None stands for a file that may not be read."""

from __future__ import annotations

from tests.phones.android.commands_system import load_averages
from tests.phones.gauges import VOLTAGE_PER_V
from tests.phones.memory import Process
from tests.phones.model import DeviceModel
from tests.phones.personas import ClusterFacts

Files = dict[str, bytes | None]

_JIFFY_NS = 10_000_000
_CPU = "/sys/devices/system/cpu"
_BATTERY = "/sys/class/power_supply/battery"
_STATUS_NAMES = {2: "Charging", 3: "Discharging", 4: "Not charging", 5: "Full"}


def files_for_shell(model: DeviceModel) -> Files:
    """Return what the shell user sees."""
    dialect = model.persona.dialect
    with model.present():
        files = _texts(_common(model) | _whole_system(model)) | _clocks(model)
        for process in model.memory.processes.values():
            files |= _process(model, process, f"/proc/{process.pid}")
        files |= _zones(model, readable=dialect.zones_readable_by_shell)
        return files | _power_supply(model, readable=dialect.power_supply_readable)


def read_as_app(model: DeviceModel, pid: int, path: str) -> bytes | None:
    """Return one file as an app process sees it, None where it may not read it; KeyError where there is none.

    An app sees itself, little of the system, and what SELinux leaves of /sys.
    """
    with model.present():
        return _app_files(model, pid, path)[path]


def _app_files(model: DeviceModel, pid: int, path: str) -> Files:
    """Return the files around `path` only: a runner asks fifty times a second of model time."""
    if path.startswith(("/proc/self/", f"/proc/{pid}/")):
        return _process(model, model.memory.processes[pid], path.rpartition("/")[0])
    if path.startswith("/sys/class/thermal/"):
        return _zones(model, readable=model.persona.dialect.zones_readable_by_app)
    if path.startswith("/sys/class/power_supply/"):
        return _power_supply(model, readable=False)
    if "cpufreq" in path:
        return _clocks(model)
    return _texts(_common(model)) | dict.fromkeys(_whole_system(model))


def _texts(files: dict[str, str]) -> Files:
    return {path: text.encode() for path, text in files.items()}


def _common(model: DeviceModel) -> dict[str, str]:
    """Return the files that everybody may read."""
    cores = [cpu for cluster in model.persona.clusters for cpu in cluster.cpus]
    files = {"/proc/meminfo": _meminfo(model), "/proc/cpuinfo": _cpuinfo(model)}
    files |= {f"{_CPU}/{name}": f"0-{cores[-1]}\n" for name in ("online", "possible", "present")}
    return files | {f"{_CPU}/cpu{cpu}/online": "1\n" for cpu in cores}


def _whole_system(model: DeviceModel) -> dict[str, str]:
    """Return the files about the whole system, which apps have not been allowed to read since Android 8."""
    loads = " ".join(f"{load:.2f}" for load in load_averages(model))
    up_s = model.boot_ns() / 1e9
    return {
        "/proc/uptime": f"{up_s:.2f} {up_s * 5.5:.2f}\n",
        "/proc/loadavg": f"{loads} 2/3127 28114\n",
        "/proc/stat": _stat(model),
    }


def _process(model: DeviceModel, process: Process, folder: str) -> Files:
    return {
        f"{folder}/status": _status(process).encode(),
        f"{folder}/stat": _process_stat(process, model.work.busy_ns(process.pid) // _JIFFY_NS).encode(),
        f"{folder}/cmdline": process.package.encode() + b"\0",
        f"{folder}/oom_score_adj": f"{process.badness}\n".encode(),
    }


def _process_stat(process: Process, busy: int) -> str:
    """Return /proc/PID/stat up to the start time; `busy` is user and system time in jiffies."""
    name, user = process.package[-15:], busy * 95 // 100
    started = process.started_ns // _JIFFY_NS
    times = f"{user} {busy - user} 0 0 10 -10 27 0 {started}"
    return f"{process.pid} ({name}) S 1022 1022 0 0 -1 1077952832 41234 0 12 0 {times}\n"


def _status(process: Process) -> str:
    """Return /proc/PID/status; sizes in kB, VmPeak and VmSize far above what is resident, as for any Android app."""
    anonymous, file, swap, peak = (
        size // 1024
        for size in (process.anonymous_bytes, process.file_bytes, process.swapped_bytes, process.high_water_bytes)
    )
    size = anonymous + file + swap + 14_000_000
    uid = process.uid
    return (
        f"Name:\t{process.package[-15:]}\nUmask:\t0077\nState:\tS (sleeping)\nTgid:\t{process.pid}\nNgid:\t0\n"
        f"Pid:\t{process.pid}\nPPid:\t1022\nTracerPid:\t0\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"
        f"Gid:\t{uid}\t{uid}\t{uid}\t{uid}\nFDSize:\t256\nGroups:\t3003 9997 20{uid % 1000:03d} 50{uid % 1000:03d} \n"
        f"VmPeak:\t{max(size, peak + 14_000_000):8d} kB\nVmSize:\t{size:8d} kB\n"
        "VmLck:\t       0 kB\nVmPin:\t       0 kB\n"
        f"VmHWM:\t{peak:8d} kB\nVmRSS:\t{anonymous + file:8d} kB\nRssAnon:\t{anonymous:8d} kB\n"
        f"RssFile:\t{file:8d} kB\nRssShmem:\t       0 kB\nVmData:\t{anonymous + 900_000:8d} kB\nVmStk:\t    8192 kB\n"
        f"VmExe:\t       4 kB\nVmLib:\t  177212 kB\nVmPTE:\t    1312 kB\nVmSwap:\t{swap:8d} kB\n"
        "CoreDumping:\t0\nThreads:\t27\nSigQ:\t0/42912\nSeccomp:\t2\nvoluntary_ctxt_switches:\t412\n"
        "nonvoluntary_ctxt_switches:\t97\n"
    )


def _meminfo(model: DeviceModel) -> str:
    memory = model.memory
    total, available = memory.total_bytes // 1024, max(0, memory.available_bytes()) // 1024
    swap_total, swapped = memory.swap_total_bytes // 1024, memory.swapped_bytes // 1024
    file = sum(process.file_bytes for process in memory.processes.values()) // 1024
    anonymous = sum(process.anonymous_bytes for process in memory.processes.values()) // 1024
    rows = {
        "MemTotal": total,
        "MemFree": available // 3,
        "MemAvailable": available,
        "Buffers": 4_212,
        "Cached": available // 2 + file,
        "SwapCached": 912,
        "Active": anonymous + file,
        "AnonPages": anonymous,
        "Mapped": file,
        "SwapTotal": swap_total,
        "SwapFree": swap_total - swapped,
    }
    return "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())


def _cpuinfo(model: DeviceModel) -> str:
    """List the cores; the name of the chip stands in no field, as on current kernels."""
    blocks = [
        f"processor\t: {cpu}\nBogoMIPS\t: 49.15\nFeatures\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics "
        f"fphp asimdhp asimddp i8mm bf16\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\n"
        "CPU revision\t: 1\n"
        for cluster, part in zip(model.persona.clusters, ("0xd80", "0xd81", "0xd82", "0xd85"), strict=False)
        for cpu in cluster.cpus
    ]
    return "\n".join(blocks)


def _stat(model: DeviceModel) -> str:
    """Return the first lines of /proc/stat in jiffies of 10 ms since boot, for all cores together."""
    cores = sum(len(cluster.cpus) for cluster in model.persona.clusters)
    busy = model.physics.busy_ns // _JIFFY_NS
    idle = max(0, model.physics.now_ns * cores // _JIFFY_NS - busy)
    user, booted_s = busy * 9 // 10, (model.wall_ns() - model.boot_ns()) // 10**9
    return f"cpu  {user} 0 {busy - user} {idle} 0 0 0 0 0 0\nctxt 918273645\nbtime {booted_s}\n"


def _clocks(model: DeviceModel) -> Files:
    """Return the clocks of all cores, which a vendor may shut."""
    texts: dict[str, str] = {}
    for cluster in model.persona.clusters:
        texts |= _clocks_of(model, cluster)
    return _texts(texts) if model.persona.dialect.clocks_readable else dict.fromkeys(texts)


def _clocks_of(model: DeviceModel, cluster: ClusterFacts) -> dict[str, str]:
    """Return a cluster's cpufreq files, below its policy and below each of its cores (links on a phone)."""
    limit = max(cluster.min_khz, round(cluster.max_khz * model.physics.clock() / 1000) * 1000)
    busy = model.physics.load != "idle" and not model.physics.background
    values = {
        "related_cpus": " ".join(str(cpu) for cpu in cluster.cpus),
        "affected_cpus": " ".join(str(cpu) for cpu in cluster.cpus),
        "cpuinfo_min_freq": cluster.min_khz,
        "cpuinfo_max_freq": cluster.max_khz,
        "scaling_min_freq": cluster.min_khz,
        "scaling_max_freq": limit,
        "scaling_cur_freq": limit if busy else cluster.min_khz,
        "scaling_governor": "schedutil",
    }
    folders = [f"{_CPU}/cpufreq/policy{cluster.cpus[0]}", *(f"{_CPU}/cpu{cpu}/cpufreq" for cpu in cluster.cpus)]
    return {f"{folder}/{name}": f"{value}\n" for folder in folders for name, value in values.items()}


def _zones(model: DeviceModel, *, readable: bool) -> Files:
    files: Files = {}
    for number, zone in enumerate(model.reported.zones):
        folder = f"/sys/class/thermal/thermal_zone{number}"
        files[f"{folder}/type"] = f"{zone.facts.type}\n".encode() if readable else None
        files[f"{folder}/temp"] = f"{zone.millicelsius}\n".encode() if readable else None
    return files


def _power_supply(model: DeviceModel, *, readable: bool) -> Files:
    """Return the fuel gauge's own files: µA and µV whatever the framework makes of them, tenths of °C."""
    reading = model.reported.gauge_reading()
    values = {
        "status": _STATUS_NAMES[reading.status],
        "capacity": reading.level,
        "current_now": reading.current_now,
        "voltage_now": reading.voltage * 1_000_000 // VOLTAGE_PER_V[model.persona.gauge.voltage],
        "temp": reading.temperature,
        "charge_counter": reading.charge_counter,
        "technology": model.persona.battery.technology,
    }
    known = {name: value for name, value in values.items() if value is not None}
    uevent = "".join(f"POWER_SUPPLY_{name.upper()}={value}\n" for name, value in known.items())
    files: Files = {f"{_BATTERY}/{name}": f"{value}\n".encode() for name, value in known.items()}
    files[f"{_BATTERY}/uevent"] = f"POWER_SUPPLY_NAME=battery\nPOWER_SUPPLY_TYPE=Battery\n{uevent}".encode()
    return files if readable else dict.fromkeys(files)
