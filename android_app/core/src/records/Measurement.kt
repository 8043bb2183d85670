package org.ondeviceprofiler.core

/**
 * The protocol of measurement: `spaced` waits `gapS` before each repetition, `burst` waits nothing, `sustained` goes
 * on for `minutes` whatever the repeats say.
 */
internal data class Measurement(val kind: MeasurementKind, val gapS: Double?, val minutes: Double?) : Writable {
    override fun toJson(): JsonObject = jsonOf("kind" to kind, "gap_s" to gapS, "minutes" to minutes)

    companion object {
        fun read(value: Value): Measurement =
            value.record {
                Measurement(
                    need("kind").word(MeasurementKind.entries),
                    this["gap_s"]?.orNull { real() },
                    this["minutes"]?.orNull { real() },
                )
            }
    }
}
