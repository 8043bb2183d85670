package org.ondeviceprofiler.core

/** Reads what Linux lets the fastest cores run at: on phones they are capped first. */
internal class ProcessorGauge(private val probes: Probes) {
    private val fastest: List<String> by lazy { fastestPolicies() }

    /** Why the clocks cannot be read, where they cannot. */
    val reason: String? get() = if (fastest.isEmpty()) "this device does not tell its clocks" else null

    /** The highest clock of the fastest cores now. */
    fun frequencyKhz(): Long? = highest("scaling_cur_freq")

    /** The highest clock now allowed on the fastest cores, which thermal drivers lower. */
    fun limitKhz(): Long? = highest("scaling_max_freq")

    private fun highest(name: String): Long? = fastest.mapNotNull { number("$it/$name") }.maxOrNull()

    private fun fastestPolicies(): List<String> {
        val policies = (0 until probes.cores).map { "/sys/devices/system/cpu/cpufreq/policy$it" }
        val clocks = policies.associateWith { number("$it/cpuinfo_max_freq") }.filterValues { it != null }
        val most = clocks.values.maxOfOrNull { it ?: 0 } ?: return emptyList()
        return clocks.filterValues { it == most }.keys.toList()
    }

    private fun number(path: String): Long? = probes.read(path).text?.trim()?.toLongOrNull()?.takeIf { it > 0 }
}
