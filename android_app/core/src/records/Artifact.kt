package org.ondeviceprofiler.core

/** A picture that the runner wrote; `path` is relative to its storage. */
internal data class Artifact(
    override val stamp: Stamp,
    val path: String,
    val sha256: String,
    val phase: Phase,
    val iteration: Int,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(
            *stamp.members("artifact"),
            "path" to path,
            "sha256" to sha256,
            "media" to MEDIA,
            "phase" to phase,
            "iteration" to iteration,
        )

    companion object {
        const val MEDIA: String = "image/x-portable-pixmap"

        fun of(fields: Fields): Artifact {
            fields.need("media").oneOf(MEDIA)
            return Artifact(
                Stamp.of(fields),
                fields.need("path").text(),
                fields.need("sha256").text(),
                fields.need("phase").word(Phase.entries),
                fields.need("iteration").int(),
            )
        }
    }
}
