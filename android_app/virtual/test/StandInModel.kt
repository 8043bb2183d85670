package org.ondeviceprofiler.virtual

import java.net.InetAddress
import java.net.ServerSocket
import kotlin.concurrent.thread
import org.ondeviceprofiler.core.JsonInteger
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.JsonText
import org.ondeviceprofiler.core.jsonOf
import org.ondeviceprofiler.core.parseJson
import org.ondeviceprofiler.core.write

/** Answers a control channel: time moves as it is told to, other answers are the test's. */
internal class StandInModel(private val answers: Map<String, (JsonObject) -> JsonObject> = emptyMap()) : AutoCloseable {
    private val listener = ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))
    val advances = ArrayList<Long>()

    init {
        thread(isDaemon = true) { runCatching { serve() } }
    }

    fun channel(): ControlChannel = ControlChannel.open("127.0.0.1", listener.localPort)

    private fun serve() {
        listener.accept().use { socket ->
            val lines = socket.getInputStream().bufferedReader()
            while (true) {
                val request = parseJson((lines.readLine() ?: return).toByteArray()) as JsonObject
                val answer = answer(request) ?: return
                socket.getOutputStream().write((answer.write() + "\n").toByteArray())
            }
        }
    }

    /** Null hangs up. */
    private fun answer(request: JsonObject): JsonObject? {
        val what = (request["do"] as JsonText).value
        answers[what]?.let { return it(request) }
        return when (what) {
            "attach" -> time(START_NS)
            "advance" -> time((request["boot_ns"] as JsonInteger).value.also(advances::add))
            "detach" -> jsonOf()
            "hang_up" -> null
            else -> jsonOf("error" to "nothing to do with $what")
        }
    }

    private fun time(bootNs: Long) = jsonOf("boot_ns" to bootNs, "wall_ns" to bootNs + 5)

    override fun close() = listener.close()

    companion object {
        const val START_NS = 1000L
    }
}
