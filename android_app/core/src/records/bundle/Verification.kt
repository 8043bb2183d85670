package org.ondeviceprofiler.core

/** What was compared at export time, and how well it agreed. */
internal data class Verification(
    val reference: String,
    val components: Map<String, Difference>,
    val images: Map<String, ImageDifference>,
    val engine: String?,
    val notRun: String?,
    val imagesNotRun: String?,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "reference" to reference,
            "components" to components,
            "images" to images,
            "engine" to engine,
            "not_run" to notRun,
            "images_not_run" to imagesNotRun,
        )

    companion object {
        fun read(value: Value): Verification =
            value.record {
                Verification(
                    need("reference").text(),
                    need("components").map(Difference::read),
                    need("images").byTask(ImageDifference::read),
                    this["engine"]?.orNull { text() },
                    this["not_run"]?.orNull { text() },
                    this["images_not_run"]?.orNull { text() },
                )
            }
    }
}
