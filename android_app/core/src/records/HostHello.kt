package org.ondeviceprofiler.core

/** The host's first line; `token` is the file it pushed into the runner's storage. */
internal data class HostHello(val protocolVersion: Int, val hostVersion: String, val token: String) : Request {
    override fun toJson(): JsonObject =
        jsonOf(
            "request" to "hello",
            "protocol_version" to protocolVersion,
            "host_version" to hostVersion,
            "token" to token,
        )

    companion object {
        fun of(fields: Fields): HostHello =
            HostHello(
                fields.need("protocol_version").int(),
                fields.need("host_version").text(),
                fields.need("token").text(),
            )
    }
}
