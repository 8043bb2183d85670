package org.ondeviceprofiler.virtual

import java.nio.file.Path

/** What the virtual phone tells its runner when it starts it. */
internal class Options(
    val storage: Path,
    val root: Path,
    val modelHost: String,
    val modelPort: Int,
    val idleTimeoutMs: Int,
) {
    companion object {
        private val NAMES = setOf("--storage", "--root", "--model", "--idle-timeout")

        /** Read the command line. Throws IllegalArgumentException with what is wrong. */
        fun parse(arguments: List<String>): Options {
            val given = HashMap<String, String>()
            for (pair in arguments.chunked(2)) {
                require(pair[0] in NAMES) { "unknown option ${pair[0]}" }
                require(pair.size == 2) { "${pair[0]} lacks its value" }
                given[pair[0]] = pair[1]
            }
            val (host, port) = address(needed(given, "--model"))
            val idle = given["--idle-timeout"] ?: "30"
            val seconds = requireNotNull(idle.toDoubleOrNull()) { "--idle-timeout is no number" }
            val storage = Path.of(needed(given, "--storage"))
            return Options(storage, Path.of(given["--root"] ?: "/"), host, port, (1000 * seconds).toInt())
        }

        private fun needed(given: Map<String, String>, name: String): String =
            requireNotNull(given[name]) { "$name is missing" }

        private fun address(text: String): Pair<String, Int> {
            val port = text.substringAfterLast(':', "").toIntOrNull()
            require(port != null && port in 1..65535) { "--model is not HOST:PORT" }
            return text.substringBeforeLast(':') to port
        }
    }
}
