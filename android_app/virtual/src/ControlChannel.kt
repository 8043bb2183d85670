package org.ondeviceprofiler.virtual

import java.io.BufferedReader
import java.io.IOException
import java.net.Socket
import org.ondeviceprofiler.core.InvalidJson
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.JsonText
import org.ondeviceprofiler.core.jsonOf
import org.ondeviceprofiler.core.parseJson
import org.ondeviceprofiler.core.write

/** The way to the phone's model: one JSON object a line, one reply each; safe to use from several threads. */
internal class ControlChannel private constructor(socket: Socket) {
    private val output = socket.getOutputStream()
    private val input: BufferedReader = socket.getInputStream().bufferedReader()

    /** Ask the model to do something and return its answer. Throws ModelRefused, ModelLost. */
    @Synchronized
    fun ask(what: String, vararg members: Pair<String, Any?>): JsonObject {
        val answer =
            try {
                output.write((jsonOf("do" to what, *members).write() + "\n").toByteArray())
                parsed(what, input.readLine() ?: throw ModelLost("it hung up"))
            } catch (error: IOException) {
                throw ModelLost(error.message ?: error.toString())
            }
        (answer["error"] as? JsonText)?.let { throw ModelRefused(what, it.value) }
        return answer
    }

    private fun parsed(what: String, line: String): JsonObject =
        try {
            parseJson(line.toByteArray()) as? JsonObject ?: throw ModelLost("no object in answer to $what: $line")
        } catch (error: InvalidJson) {
            throw ModelLost("no JSON in answer to $what: ${error.message}")
        }

    companion object {
        /** Connect to the model. Throws IOException. */
        fun open(host: String, port: Int): ControlChannel {
            val socket =
                try {
                    Socket(host, port)
                } catch (error: IOException) {
                    throw IOException("no model answers at $host:$port (${error.message})", error)
                }
            socket.tcpNoDelay = true
            return ControlChannel(socket)
        }
    }
}
