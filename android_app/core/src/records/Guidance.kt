package org.ondeviceprofiler.core

/** Classifier-free guidance scales; `image` only where a source image guides too. */
internal data class Guidance(val text: Double, val image: Double?) : Writable {
    override fun toJson(): JsonObject = jsonOf("text" to text, "image" to image)

    companion object {
        fun read(value: Value): Guidance =
            value.record { Guidance(need("text").real(), this["image"]?.orNull { real() }) }
    }
}
