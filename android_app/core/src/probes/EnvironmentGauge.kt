package org.ondeviceprofiler.core

/** Reads temperature, battery, clocks and own work; remembers why a reading is missing. */
internal class EnvironmentGauge(private val probes: Probes, private val clock: Clock) {
    private val zones = ThermalZones(probes)
    private val processor = ProcessorGauge(probes)
    private val work = OwnWork(probes, clock)
    private val reasons = LinkedHashMap<String, String>()

    /** Why gauges have no reading, by their names in a sample. */
    val missing: Map<String, String> @Synchronized get() = LinkedHashMap(reasons)

    /** Read every slow gauge once. */
    @Synchronized
    fun sample(): EnvironmentSample {
        val battery = probes.battery()
        val thermal = probes.thermal()
        return EnvironmentSample(
            deviceBootNs = clock.bootNs(),
            temperatureMillicelsius = told("temperature_millicelsius", zones.hottestMillicelsius()) { zones.reason },
            batteryPercent = told("battery_percent", percent(battery)) { NO_BATTERY },
            externalPower = told("external_power", battery.plugged?.let { it != 0L }) { NO_BATTERY },
            cpuFrequencyKhz = told("cpu_frequency_khz", processor.frequencyKhz()) { clocksReason() },
            cpuLoadPercent = told<Double>("cpu_load_percent", null) { HIDDEN_WORK },
            ownCpuPercent = told("own_cpu_percent", work.percent()) { work.reason },
            otherCpuPercent = told<Double>("other_cpu_percent", null) { HIDDEN_WORK },
            cpuFrequencyLimitKhz = told("cpu_frequency_limit_khz", processor.limitKhz()) { clocksReason() },
            throttleCount = told<Long>("throttle_count", null) { "Android counts no throttling" },
            batteryTemperatureMillicelsius = told("battery_temperature_millicelsius", celsius(battery)) { NO_BATTERY },
            batteryCurrentRaw = told("battery_current_raw", known(battery.currentNow)) { NO_BATTERY },
            batteryVoltageMillivolts = told("battery_voltage_millivolts", battery.voltageMillivolts) { NO_BATTERY },
            batteryChargeCounterMicroamperehours =
                told("battery_charge_counter_microamperehours", known(battery.chargeCounterMicroamperehours)) { NO_BATTERY },
            thermalStatus = told("thermal_status", thermal.status) { NO_THERMAL },
            thermalHeadroom = told("thermal_headroom", thermal.headroom?.takeIf { it.isFinite() }) { NO_HEADROOM },
            energyMicrowattsecondsByRail =
                told("energy_microwattseconds_by_rail", probes.energyMicrowattsecondsByRail()) { NO_METER },
        )
    }

    /** The hottest processor or skin sensor, else the battery's; null where there is none. */
    @Synchronized
    fun readinessMillicelsius(): Long? = zones.hottestMillicelsius() ?: celsius(probes.battery())

    /** Whether power comes from outside; null where the system does not tell. */
    @Synchronized
    fun externalPower(): Boolean? = probes.battery().plugged?.let { it != 0L }

    private fun <T> told(name: String, value: T?, reason: () -> String): T? {
        // A share of work that is missing for one short window only is no missing gauge.
        if (value == null && name !in reasons && !(name == "own_cpu_percent" && work.readable)) reasons[name] = reason()
        return value
    }

    private fun clocksReason(): String = processor.reason ?: "this device does not tell this clock"

    private fun percent(battery: BatteryReading): Double? {
        val (level, scale) = (battery.level ?: return null) to (battery.scale ?: return null)
        return if (scale > 0 && level >= 0) 100.0 * level / scale else null
    }

    private fun celsius(battery: BatteryReading): Long? = battery.temperatureTenths?.let { it * 100 }

    /** Android says "not supported" by the least number of either width. */
    private fun known(value: Long?): Long? =
        value?.takeUnless { it == Long.MIN_VALUE || it == Int.MIN_VALUE.toLong() }

    private companion object {
        const val NO_BATTERY = "the system tells no such reading of its battery"
        const val NO_THERMAL = "the system tells no thermal status"
        const val NO_HEADROOM = "the system tells no thermal headroom"
        const val NO_METER = "this device has no energy meter that apps may read"
        const val HIDDEN_WORK = "Android shows apps no work but their own"
    }
}
