package org.ondeviceprofiler.core

import java.io.IOException
import java.net.Socket

/** A host that says whatever a test wants. */
internal class RawHost(port: Int) : AutoCloseable {
    private val socket = Socket("127.0.0.1", port).apply { soTimeout = 20_000 }
    private val lines = socket.getInputStream().bufferedReader()

    fun say(text: String) = socket.getOutputStream().write("$text\n".toByteArray())

    fun say(request: Request) = say(request.toJson().write())

    fun hears(): Map<String, Json> = (parseJson(lines.readLine().toByteArray()) as JsonObject).members

    fun hearsReply(): Reply = decode(lines.readLine().toByteArray(), "Reply", "the runner", Reply::read)

    fun hearsEvent(): Event = decode(lines.readLine().toByteArray(), "Event", "the runner", Event::read)

    fun hearsNothingMore(): Boolean =
        try {
            lines.readLine() == null
        } catch (_: IOException) {
            true // closed while some of what was sent lay unread
        }

    fun greet(): RawHost {
        say(HostHello(Protocol.VERSION, "test", TOKEN))
        check(hearsReply() is RunnerHello)
        return this
    }

    override fun close() = socket.close()

    companion object {
        const val TOKEN = "the-token"
    }
}
