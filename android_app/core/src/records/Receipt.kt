package org.ondeviceprofiler.core

/** A file as the runner sees it; size and hash are null where the file is missing. */
internal data class Receipt(val path: String, val sizeBytes: Long?, val sha256: String?) : Writable {
    override fun toJson(): JsonObject = jsonOf("path" to path, "size_bytes" to sizeBytes, "sha256" to sha256)

    companion object {
        fun read(value: Value): Receipt =
            value.record {
                Receipt(need("path").text(), need("size_bytes").orNull { integer() }, need("sha256").orNull { text() })
            }
    }
}
