package org.ondeviceprofiler.core

/**
 * What a battery's numbers mean, by what is physically possible and never by what is usual.
 *
 * A number that could be meant in several units is no reading. The current stays as the system says it: its unit and
 * sign are found by calibration, on the host.
 */
internal class BatteryFigures(private val reading: BatteryReading) {
    private val reasons = HashMap<String, String>()

    val percent: Double? = percent()
    val external: Boolean? = reading.plugged?.let { it != 0L }
    val currentRaw: Long? = supported(reading.currentNow)
    val voltageMillivolts: Long? = voltage()
    val temperatureMillicelsius: Long? = temperature()
    val chargeMicroamperehours: Long? = charge()

    /** Say why a gauge, by its name in a sample, has no reading. */
    fun reason(name: String): String = reasons[name] ?: "the system tells no such reading of its battery"

    private fun percent(): Double? {
        val level = reading.level ?: return null
        val scale = reading.scale ?: return null
        if (scale > 0 && level in 0..scale) return 100.0 * level / scale
        return missing("battery_percent", "level $level of $scale is no share of a charge")
    }

    /** Millivolts, as documented, or microvolts; whole volts are too coarse to be a reading. */
    private fun voltage(): Long? {
        val value = reading.voltageMillivolts ?: return null
        return when {
            value in MILLIVOLTS -> value
            value / 1000 in MILLIVOLTS -> value / 1000
            value * 1000 in MILLIVOLTS -> missing(VOLTAGE, "voltage $value is in whole volts: too coarse")
            else -> missing(VOLTAGE, "voltage $value is physically impossible in every known unit")
        }
    }

    /** Tenths of a °C, as documented; some phones give whole °C, and 26 may then be either. */
    private fun temperature(): Long? {
        val value = reading.temperatureTenths ?: return null
        return when {
            value == 0L -> missing(TEMPERATURE, "temperature 0 is what a missing sensor reads")
            value in CELSIUS -> missing(TEMPERATURE, "temperature $value could be meant in more than one unit")
            value in 10 * CELSIUS.first..10 * CELSIUS.last -> 100 * value
            else -> missing(TEMPERATURE, "temperature $value is physically impossible in every known unit")
        }
    }

    private fun charge(): Long? {
        val value = supported(reading.chargeCounterMicroamperehours) ?: return null
        if (value == 0L) return missing(CHARGE, "charge counter 0 is what a missing counter reads")
        val share = percent?.takeIf { it > 0 } ?: return value
        if (100 * value / share in CAPACITY) return value
        return missing(CHARGE, "charge counter $value makes no phone's capacity in µAh")
    }

    /** Android says "not supported" by the least number of either width. */
    private fun supported(value: Long?): Long? =
        value?.takeUnless { it == Long.MIN_VALUE || it == Int.MIN_VALUE.toLong() }

    private fun <T> missing(name: String, reason: String): T? {
        reasons[name] = reason
        return null
    }

    private companion object {
        const val VOLTAGE = "battery_voltage_millivolts"
        const val TEMPERATURE = "battery_temperature_millicelsius"
        const val CHARGE = "battery_charge_counter_microamperehours"

        // One lithium cell, or two in a row as in some folding phones; and what a phone's battery survives.
        val MILLIVOLTS = 2000L..10_000L
        val CELSIUS = -30L..100L
        val CAPACITY = 300_000.0..30_000_000.0
    }
}
