package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption

/** What a journal needs of its file. */
internal interface JournalFile {
    /** Append with one write and return how many bytes found room. Throws IOException. */
    fun write(line: ByteArray): Int

    /** Cut off what lies behind `sizeBytes`. */
    fun truncate(sizeBytes: Long)

    /** Flush to the disk. */
    fun sync()

    companion object {
        /** Make a file that is not there yet. Throws IOException. */
        fun create(path: Path): JournalFile {
            val options = arrayOf(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, StandardOpenOption.APPEND)
            return JournalChannel(FileChannel.open(path, *options))
        }
    }
}

private class JournalChannel(private val channel: FileChannel) : JournalFile {
    override fun write(line: ByteArray): Int = channel.write(ByteBuffer.wrap(line))

    override fun truncate(sizeBytes: Long) {
        channel.truncate(sizeBytes)
    }

    override fun sync() = channel.force(false)
}
