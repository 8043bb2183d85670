package org.ondeviceprofiler.core

import java.io.IOException
import java.nio.file.Path
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * The journal: each event is one appended line before anyone is told; the file is the truth.
 *
 * Safe to call from several threads.
 */
internal class Journal(
    val path: Path,
    private val jobId: String,
    private val clock: Clock,
    private val file: JournalFile = JournalFile.create(path),
) {
    private val lock = ReentrantLock()
    private val grown = lock.newCondition()
    private var seq = 0L
    private var sizeBytes = 0L
    private var isClosed = false

    /** Tell whether the last event has been written. */
    val closed: Boolean get() = lock.withLock { isClosed }

    /** Number an event and write it as one line; after `close` nothing is written. Throws IOException. */
    fun append(make: (Stamp) -> Event) {
        lock.withLock {
            if (!isClosed) {
                write(encode(make(Stamp(seq, jobId, clock.bootNs(), clock.wallNs()))) + '\n'.code.toByte())
                seq += 1
            }
            grown.signalAll()
        }
    }

    private fun write(line: ByteArray) {
        val written = file.write(line)
        if (written < line.size) {
            // The disk is full. Nothing may follow a torn line; without it a shorter event may still find room.
            file.truncate(sizeBytes)
            throw IOException("No space left on device")
        }
        sizeBytes += written
    }

    /** Flush to the disk; never called inside a timed window. Throws IOException. */
    fun sync() = file.sync()

    /** Flush, and let no later event in: the one written last is the end. Throws IOException. */
    fun close() {
        lock.withLock {
            if (!isClosed) {
                sync()
                isClosed = true
            }
            grown.signalAll()
        }
    }

    /** Wait until there is more than `position` bytes and return how many; null where there never will be. */
    fun awaitBeyond(position: Long): Long? =
        lock.withLock {
            while (sizeBytes <= position && !isClosed) grown.await()
            sizeBytes.takeIf { it > position }
        }
}
