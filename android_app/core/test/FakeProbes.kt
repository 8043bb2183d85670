package org.ondeviceprofiler.core

/** A system whose files and gauges are what a test says. */
internal class FakeProbes(val files: MutableMap<String, String> = HashMap()) : Probes {
    var battery = BatteryReading(null, null, null, null, null, null, null)
    var thermal = ThermalReading(null, null)
    var energy: Map<String, Long>? = null

    init {
        files.putIfAbsent("/proc/self/status", "VmHWM:\t2000 kB\nVmRSS:\t1500 kB\nVmSwap:\t100 kB\n")
    }

    override val cores: Int = 8

    override fun read(path: String): Reading = files[path]?.let(Reading::of) ?: Reading.missing("No such file or directory")

    override fun battery(): BatteryReading = battery

    override fun thermal(): ThermalReading = thermal

    override fun energyMicrowattsecondsByRail(): Map<String, Long>? = energy
}
