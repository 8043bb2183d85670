package org.ondeviceprofiler.core

/** A file of the bundle; `path` is relative to its folder, with forward slashes. */
internal data class BundleFile(val path: String, val sizeBytes: Long, val sha256: String) : Writable {
    override fun toJson(): JsonObject = jsonOf("path" to path, "size_bytes" to sizeBytes, "sha256" to sha256)

    companion object {
        fun read(value: Value): BundleFile =
            value.record { BundleFile(need("path").text(), need("size_bytes").integer(), need("sha256").text()) }
    }
}
