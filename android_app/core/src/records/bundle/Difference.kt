package org.ondeviceprofiler.core

/** How far an output is from its reference: ‖a − b‖∞ and ‖a − b‖₂ / ‖b‖₂. */
internal data class Difference(val maxAbsolute: Double, val relative: Double) : Writable {
    override fun toJson(): JsonObject = jsonOf("max_absolute" to maxAbsolute, "relative" to relative)

    companion object {
        fun read(value: Value): Difference =
            value.record { Difference(need("max_absolute").real(), need("relative").real()) }
    }
}
