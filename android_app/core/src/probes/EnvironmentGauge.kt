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
        val battery = BatteryFigures(probes.battery())
        val thermal = probes.thermal()
        return EnvironmentSample(
            deviceBootNs = clock.bootNs(),
            temperatureMillicelsius = told("temperature_millicelsius", zones.hottestMillicelsius()) { zones.reason },
            batteryPercent = battery.told("battery_percent") { percent },
            externalPower = battery.told("external_power") { external },
            cpuFrequencyKhz = told("cpu_frequency_khz", processor.frequencyKhz()) { clocksReason() },
            cpuLoadPercent = told<Double>("cpu_load_percent", null) { HIDDEN_WORK },
            ownCpuPercent = told("own_cpu_percent", work.percent()) { work.reason },
            otherCpuPercent = told<Double>("other_cpu_percent", null) { HIDDEN_WORK },
            cpuFrequencyLimitKhz = told("cpu_frequency_limit_khz", processor.limitKhz()) { clocksReason() },
            throttleCount = told<Long>("throttle_count", null) { "Android counts no throttling" },
            batteryTemperatureMillicelsius =
                battery.told("battery_temperature_millicelsius") { temperatureMillicelsius },
            batteryCurrentRaw = battery.told("battery_current_raw") { currentRaw },
            batteryVoltageMillivolts = battery.told("battery_voltage_millivolts") { voltageMillivolts },
            batteryChargeCounterMicroamperehours =
                battery.told("battery_charge_counter_microamperehours") { chargeMicroamperehours },
            thermalStatus = told("thermal_status", thermal.status) { NO_THERMAL },
            thermalHeadroom = told("thermal_headroom", thermal.headroom?.takeIf { it.isFinite() }) { NO_HEADROOM },
            energyMicrowattsecondsByRail =
                told("energy_microwattseconds_by_rail", probes.energyMicrowattsecondsByRail()) { NO_METER },
        )
    }

    /** The hottest processor or skin sensor, else the battery's; null where there is none. */
    @Synchronized
    fun readinessMillicelsius(): Long? =
        zones.hottestMillicelsius() ?: BatteryFigures(probes.battery()).temperatureMillicelsius

    /** Whether power comes from outside; null where the system does not tell. */
    @Synchronized
    fun externalPower(): Boolean? = BatteryFigures(probes.battery()).external

    private fun <T> BatteryFigures.told(name: String, value: BatteryFigures.() -> T?): T? =
        told(name, value()) { reason(name) }

    private fun <T> told(name: String, value: T?, reason: () -> String): T? {
        // A share of work that is missing for one short window only is no missing gauge.
        val missing = value == null && !(name == "own_cpu_percent" && work.readable)
        if (!missing) reasons.remove(name) else if (name !in reasons) reasons[name] = reason()
        return value
    }

    private fun clocksReason(): String = processor.reason ?: "this device does not tell this clock"

    private companion object {
        const val NO_THERMAL = "the system tells no thermal status"
        const val NO_HEADROOM = "the system tells no thermal headroom"
        const val NO_METER = "this device has no energy meter that apps may read"
        const val HIDDEN_WORK = "Android shows apps no work but their own"
    }
}
