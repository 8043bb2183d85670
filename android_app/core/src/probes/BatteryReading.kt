package org.ondeviceprofiler.core

/**
 * The battery as the system says it; null where it says nothing.
 *
 * `currentNow` is of unknown unit and sign. `plugged` is 0 where no power comes from outside.
 */
public data class BatteryReading(
    public val currentNow: Long?,
    public val chargeCounterMicroamperehours: Long?,
    public val voltageMillivolts: Long?,
    public val temperatureTenths: Long?,
    public val level: Long?,
    public val scale: Long?,
    public val plugged: Long?,
)
