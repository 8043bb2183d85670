package org.ondeviceprofiler.core

import java.io.IOException
import java.net.Socket

/** One connection as the runner sees it: a message a line. */
internal class Line(private val socket: Socket) : AutoCloseable {
    private val lines = LineReader(socket.getInputStream())
    private val output = socket.getOutputStream()

    init {
        socket.soTimeout = HELLO_TIMEOUT_MS
    }

    /** Let the other end be silent from now on. */
    fun waitWithoutLimit() {
        socket.soTimeout = 0
    }

    /** Return the next request, or null at the end. Throws InvalidRecord, IOException. */
    fun read(): Request? = lines.next()?.let { decode(it, "Request", "the host", Request::read) }

    /** Send one reply. Throws IOException. */
    fun send(reply: Reply) = send(encode(reply) + '\n'.code.toByte())

    /** Send whole lines; never interleaved with another thread's. Throws IOException. */
    @Synchronized
    fun send(lines: ByteArray) = output.write(lines)

    /** End the connection for whoever reads or writes it now. */
    fun hangUp() {
        try {
            socket.shutdownOutput()
            socket.shutdownInput()
        } catch (_: IOException) {
            // The other end is gone already.
        }
    }

    override fun close() {
        hangUp()
        socket.close()
    }

    private companion object {
        const val HELLO_TIMEOUT_MS = 10_000
    }
}
