package org.ondeviceprofiler.core

import java.io.IOException
import java.net.ServerSocket
import java.net.SocketTimeoutException
import kotlin.concurrent.thread

/**
 * Listens until the host says `bye`, or none comes while there is nothing to do.
 *
 * Each connection has a thread of its own, so that neither a stranger nor one that broke unnoticed keeps the host out.
 */
internal class Server(
    private val listener: ServerSocket,
    private val office: Office,
    private val idleTimeoutMs: Int,
    private val gatherMs: Long = 100,
) {
    /** Serve on the caller's thread until the listener is closed. */
    fun run() {
        listener.soTimeout = idleTimeoutMs
        while (!office.released.isSet) {
            try {
                val socket = listener.accept()
                thread(isDaemon = true, name = "host") { Conversation(Line(socket), office, gatherMs).run() }
            } catch (_: SocketTimeoutException) {
                office.leaveIfIdle()
            } catch (_: IOException) {
                return
            }
        }
    }
}
