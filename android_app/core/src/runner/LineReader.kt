package org.ondeviceprofiler.core

import java.io.InputStream

/** Parts a stream of bytes into lines of at most 1 MiB. */
internal class LineReader(private val stream: InputStream) {
    private var buffer = ByteArray(START_BYTES)
    private var start = 0
    private var end = 0

    /** Return the next line without its end; null where the stream ends before. Throws InvalidRecord, IOException. */
    fun next(): ByteArray? {
        var looked = start
        while (true) {
            for (index in looked until end) if (buffer[index] == NEW_LINE) return taken(index)
            if (end - start >= Protocol.MAX_LINE_BYTES) throw tooLong()
            val waiting = end - start
            if (!fill()) return null
            looked = start + waiting
        }
    }

    private fun taken(newLine: Int): ByteArray {
        if (newLine + 1 - start > Protocol.MAX_LINE_BYTES) throw tooLong()
        return buffer.copyOfRange(start, newLine).also { start = newLine + 1 }
    }

    private fun fill(): Boolean {
        makeRoom()
        val count = stream.read(buffer, end, buffer.size - end)
        if (count > 0) end += count
        return count > 0
    }

    private fun makeRoom() {
        if (end < buffer.size) return
        val waiting = end - start
        val target = if (waiting > buffer.size / 2) ByteArray(2 * buffer.size) else buffer
        buffer.copyInto(target, 0, start, end)
        buffer = target
        start = 0
        end = waiting
    }

    private fun tooLong() = InvalidRecord("the host: a line of more than ${Protocol.MAX_LINE_BYTES} bytes")

    private companion object {
        const val START_BYTES = 64 * 1024
        const val NEW_LINE = '\n'.code.toByte()
    }
}
