package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.BatteryReading
import org.ondeviceprofiler.core.JsonInteger
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.Probes
import org.ondeviceprofiler.core.Reading
import org.ondeviceprofiler.core.ThermalReading

/** Reads the model's gauges, with all their quirks, as an app on the phone would. */
internal class ModelledProbes(private val control: ControlChannel) : Probes {
    // Linux names the last core in this file, as in 0-7.
    override val cores: Int by lazy {
        val range = read("/sys/devices/system/cpu/possible").text?.trim()?.substringAfterLast('-')
        (range?.toIntOrNull() ?: (MOST_CORES - 1)) + 1
    }

    override fun read(path: String): Reading {
        val answer = control.ask("read", "path" to path)
        return answer.text("text")?.let(Reading::of) ?: Reading.missing(answer.text("reason") ?: "nothing there")
    }

    override fun battery(): BatteryReading {
        val answer = control.ask("battery")
        return BatteryReading(
            currentNow = answer.integer("current_now"),
            chargeCounterMicroamperehours = answer.integer("charge_counter"),
            voltageMillivolts = answer.integer("voltage_mv"),
            temperatureTenths = answer.integer("temperature_tenths"),
            level = answer.integer("level"),
            scale = answer.integer("scale"),
            plugged = answer.integer("plugged"),
        )
    }

    override fun thermal(): ThermalReading {
        val answer = control.ask("thermal")
        return ThermalReading(answer.integer("status"), answer.real("headroom"))
    }

    override fun energyMicrowattsecondsByRail(): Map<String, Long>? {
        val readings = control.ask("power_monitors")["readings"] as? JsonObject ?: return null
        val known = readings.members.mapNotNull { (name, energy) -> (energy as? JsonInteger)?.let { name to it.value } }
        return known.toMap()
    }

    private companion object {
        const val MOST_CORES = 16
    }
}
