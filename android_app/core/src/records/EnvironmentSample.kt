package org.ondeviceprofiler.core

/**
 * One reading of the slow gauges; null where there is none.
 *
 * `ownCpuPercent` and `otherCpuPercent` (everything but the runner) count one core as 100; `cpuFrequencyLimitKhz` is
 * what the system lets the fastest core run at. `temperatureMillicelsius` is the hottest processor or skin sensor, the
 * battery's apart. `batteryCurrentRaw` is what the system says, of unknown unit and sign; `thermalHeadroom` is 1.0
 * where throttling is severe; energy by rail counts since boot.
 */
internal data class EnvironmentSample(
    val deviceBootNs: Long,
    val temperatureMillicelsius: Long? = null,
    val batteryPercent: Double? = null,
    val externalPower: Boolean? = null,
    val cpuFrequencyKhz: Long? = null,
    val cpuLoadPercent: Double? = null,
    val ownCpuPercent: Double? = null,
    val otherCpuPercent: Double? = null,
    val cpuFrequencyLimitKhz: Long? = null,
    val throttleCount: Long? = null,
    val batteryTemperatureMillicelsius: Long? = null,
    val batteryCurrentRaw: Long? = null,
    val batteryVoltageMillivolts: Long? = null,
    val batteryChargeCounterMicroamperehours: Long? = null,
    val thermalStatus: Long? = null,
    val thermalHeadroom: Double? = null,
    val energyMicrowattsecondsByRail: Map<String, Long>? = null,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "device_boot_ns" to deviceBootNs,
            "temperature_millicelsius" to temperatureMillicelsius,
            "battery_percent" to batteryPercent,
            "external_power" to externalPower,
            "cpu_frequency_khz" to cpuFrequencyKhz,
            "cpu_load_percent" to cpuLoadPercent,
            "own_cpu_percent" to ownCpuPercent,
            "other_cpu_percent" to otherCpuPercent,
            "cpu_frequency_limit_khz" to cpuFrequencyLimitKhz,
            "throttle_count" to throttleCount,
            "battery_temperature_millicelsius" to batteryTemperatureMillicelsius,
            "battery_current_raw" to batteryCurrentRaw,
            "battery_voltage_millivolts" to batteryVoltageMillivolts,
            "battery_charge_counter_microamperehours" to batteryChargeCounterMicroamperehours,
            "thermal_status" to thermalStatus,
            "thermal_headroom" to thermalHeadroom,
            "energy_microwattseconds_by_rail" to energyMicrowattsecondsByRail,
        )

    companion object {
        fun read(value: Value): EnvironmentSample =
            value.record {
                EnvironmentSample(
                    need("device_boot_ns").integer(),
                    need("temperature_millicelsius").orNull { integer() },
                    need("battery_percent").orNull { real() },
                    need("external_power").orNull { boolean() },
                    need("cpu_frequency_khz").orNull { integer() },
                    need("cpu_load_percent").orNull { real() },
                    need("own_cpu_percent").orNull { real() },
                    this["other_cpu_percent"]?.orNull { real() },
                    this["cpu_frequency_limit_khz"]?.orNull { integer() },
                    this["throttle_count"]?.orNull { integer() },
                    this["battery_temperature_millicelsius"]?.orNull { integer() },
                    this["battery_current_raw"]?.orNull { integer() },
                    this["battery_voltage_millivolts"]?.orNull { integer() },
                    this["battery_charge_counter_microamperehours"]?.orNull { integer() },
                    this["thermal_status"]?.orNull { integer() },
                    this["thermal_headroom"]?.orNull { real() },
                    this["energy_microwattseconds_by_rail"]?.orNull { map { integer() } },
                )
            }
    }
}
