package org.ondeviceprofiler.core

/** Finds the processor's and the skin's sensors among Linux's thermal zones, and reads the hottest. */
internal class ThermalZones(private val probes: Probes) {
    private var denied: String? = null
    private val zones: List<String> by lazy { found() }

    /** Why there is no reading, where there is none. */
    val reason: String
        get() = denied ?: "this device shows apps no sensor of its processor or skin"

    /** The hottest of them now in m°C; null where the process may read none. */
    fun hottestMillicelsius(): Long? = zones.mapNotNull(::millicelsius).maxOrNull()

    private fun found(): List<String> {
        val found = ArrayList<String>()
        var misses = 0
        var number = 0
        while (misses < MOST_MISSES && number < MOST_ZONES) {
            val zone = "/sys/class/thermal/thermal_zone$number"
            val type = probes.read("$zone/type")
            misses = if (type.text == null) misses + 1 else 0
            if (number == 0 && type.text == null) denied = "cannot read $zone: ${type.reason}"
            if (type.text != null && isProcessorOrSkin(type.text)) found.add(zone)
            number += 1
        }
        return found
    }

    /** Zone names differ by vendor: a zone counts where it is named after a core, the chip or the case. */
    private fun isProcessorOrSkin(type: String): Boolean {
        val name = type.trim().lowercase()
        return NAMES.any { it in name } || name in CLUSTERS
    }

    /** 0 °C and below is how drivers say that they have not measured yet. */
    private fun millicelsius(zone: String): Long? =
        probes.read("$zone/temp").text?.trim()?.toLongOrNull()?.takeIf { it in 1..HOTTEST }

    private companion object {
        const val MOST_ZONES = 128
        const val MOST_MISSES = 4 // numbers have gaps where a driver went away
        const val HOTTEST = 150_000L
        val NAMES = listOf("cpu", "soc", "skin", "quiet", "shell")
        val CLUSTERS = setOf("big", "mid", "little", "prime", "gold", "silver", "ap")
    }
}
