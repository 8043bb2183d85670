package org.ondeviceprofiler.core

/** Who may do what with the weights; `name` as in the SPDX list where it is there. */
internal data class Licence(val name: String, val commercialUse: String, val source: String?) : Writable {
    override fun toJson(): JsonObject =
        jsonOf("name" to name, "commercial_use" to commercialUse, "source" to source)

    companion object {
        fun read(value: Value): Licence =
            value.record {
                Licence(
                    need("name").text(),
                    need("commercial_use").oneOf("allowed", "forbidden", "conditional", "unknown"),
                    this["source"]?.orNull { text() },
                )
            }
    }
}
