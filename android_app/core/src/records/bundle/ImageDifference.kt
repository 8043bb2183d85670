package org.ondeviceprofiler.core

/** How far a final image is from the source's own loop, before and after rounding to uint8. */
internal data class ImageDifference(
    val floatImage: Difference,
    val uint8MaxLevels: Long,
    val uint8ChangedShare: Double,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "float_image" to floatImage,
            "uint8_max_levels" to uint8MaxLevels,
            "uint8_changed_share" to uint8ChangedShare,
        )

    companion object {
        fun read(value: Value): ImageDifference =
            value.record {
                ImageDifference(
                    Difference.read(need("float_image")),
                    need("uint8_max_levels").integer(),
                    need("uint8_changed_share").real(),
                )
            }
    }
}
