package org.ondeviceprofiler.core

/**
 * The runner's answer to `hello`: what it is and what it can run.
 *
 * `virtual` is a device that is only simulated; a `synthetic` runner computes nothing and models its costs.
 */
internal data class RunnerHello(
    val protocolVersion: Int,
    val runnerVersion: String,
    val platform: String,
    val engines: Map<String, String>,
    val virtual: Boolean,
    val pid: Long,
    val synthetic: Boolean,
) : Reply {
    override fun toJson(): JsonObject =
        jsonOf(
            "reply" to "hello",
            "protocol_version" to protocolVersion,
            "runner_version" to runnerVersion,
            "platform" to platform,
            "engines" to engines,
            "virtual" to virtual,
            "pid" to pid,
            "synthetic" to synthetic,
        )

    companion object {
        fun of(fields: Fields): RunnerHello =
            RunnerHello(
                fields.need("protocol_version").int(),
                fields.need("runner_version").text(),
                fields.need("platform").text(),
                fields.need("engines").map { text() },
                fields.need("virtual").boolean(),
                fields.need("pid").integer(),
                fields["synthetic"]?.boolean() ?: false,
            )
    }
}
