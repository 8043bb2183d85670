package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.StandardOpenOption

/** Sends a journal's lines as it grows, from the file: what was not written is not told. */
internal class JournalSender(
    private val journal: Journal,
    private val fromSeq: Long,
    private val gatherMs: Long,
    private val send: (ByteArray) -> Unit,
) {
    private var position = 0L
    private var seq = 0L

    /** Send until the journal closes. Throws IOException where the host goes away. */
    fun run() {
        FileChannel.open(journal.path, StandardOpenOption.READ).use { channel ->
            while (true) {
                val size = journal.awaitBeyond(position) ?: return
                while (position < size) sendSome(channel, size)
                // Each wake-up, here and on the host, takes a tenth of a millisecond from the model.
                if (!journal.closed) Thread.sleep(gatherMs)
            }
        }
    }

    private fun sendSome(channel: FileChannel, size: Long) {
        val chunk = ByteBuffer.allocate(minOf(size - position, Protocol.MAX_LINE_BYTES.toLong()).toInt())
        readFully(channel, position, chunk)
        val lines = chunk.array()
        val end = lines.lastIndexOf(NEW_LINE) + 1
        val start = skipped(lines, end)
        if (start < end) send(lines.copyOfRange(start, end))
        position += end
    }

    /** Count whole lines, and return where those begin that the host asked for. */
    private fun skipped(lines: ByteArray, end: Int): Int {
        var start = if (seq >= fromSeq) 0 else end
        for (index in 0 until end) {
            if (lines[index] != NEW_LINE) continue
            seq += 1
            if (seq == fromSeq) start = index + 1
        }
        return start
    }

    private companion object {
        const val NEW_LINE = '\n'.code.toByte()
    }
}
