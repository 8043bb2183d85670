package org.ondeviceprofiler.core

/** Where the weights came from; `weightsSha256` is over their files, or `random:<seed>`. */
internal data class Source(val repo: String, val revision: String?, val weightsSha256: String) : Writable {
    override fun toJson(): JsonObject =
        jsonOf("repo" to repo, "revision" to revision, "weights_sha256" to weightsSha256)

    companion object {
        fun read(value: Value): Source =
            value.record {
                Source(need("repo").text(), need("revision").orNull { text() }, need("weights_sha256").text())
            }
    }
}
