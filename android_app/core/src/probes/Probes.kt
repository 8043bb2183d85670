package org.ondeviceprofiler.core

/** What a shell of the core reads of its system; what cannot be read is missing with a reason. */
public interface Probes {
    /** How many cores this process may use. */
    public val cores: Int

    /** Read a small file of the system, as `/proc/self/status`. */
    public fun read(path: String): Reading

    /** Read the battery, as the system says it. */
    public fun battery(): BatteryReading

    /** Read how hot the system finds itself. */
    public fun thermal(): ThermalReading

    /** Energy since boot by rail in µW·s, or null where the system has no such meter. */
    public fun energyMicrowattsecondsByRail(): Map<String, Long>?
}
