package org.ondeviceprofiler.core

/** The job's tensors, in the runner's own storage. */
internal data class InputFile(val path: String, val sha256: String) : Writable {
    override fun toJson(): JsonObject = jsonOf("path" to path, "sha256" to sha256)

    companion object {
        fun read(value: Value): InputFile =
            value.record { InputFile(need("path").text(), need("sha256").text()) }
    }
}
