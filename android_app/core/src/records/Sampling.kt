package org.ondeviceprofiler.core

/** How often the runner reads its gauges while it works, and at least how long apart its canary runs. */
internal data class Sampling(
    val memoryIntervalMs: Long = 20,
    val environmentIntervalMs: Long = 1000,
    val canaryIntervalMs: Long = 1000,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "memory_interval_ms" to memoryIntervalMs,
            "environment_interval_ms" to environmentIntervalMs,
            "canary_interval_ms" to canaryIntervalMs,
        )

    companion object {
        fun read(value: Value): Sampling =
            value.record {
                Sampling(
                    this["memory_interval_ms"]?.integer() ?: 20,
                    this["environment_interval_ms"]?.integer() ?: 1000,
                    this["canary_interval_ms"]?.integer() ?: 1000,
                )
            }
    }
}
