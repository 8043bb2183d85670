package org.ondeviceprofiler.core

/**
 * Samples gathered since the last trace, written between iterations; `missing` says for each gauge that has no reading
 * why.
 */
internal data class Trace(
    override val stamp: Stamp,
    val memory: List<MemorySample>,
    val environment: List<EnvironmentSample>,
    val missing: Map<String, String>,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(*stamp.members("trace"), "memory" to memory, "environment" to environment, "missing" to missing)

    companion object {
        fun of(fields: Fields): Trace =
            Trace(
                Stamp.of(fields),
                fields.need("memory").list(MemorySample::read),
                fields.need("environment").list(EnvironmentSample::read),
                fields.need("missing").map { text() },
            )
    }
}
