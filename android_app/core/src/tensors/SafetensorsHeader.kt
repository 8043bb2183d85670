package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel
import java.nio.file.Path

/** What a safetensors file says of its tensors; they fill it wholly, and none lies over another. */
internal class SafetensorsHeader private constructor(val entries: List<SafetensorsEntry>, val dataStart: Long) {
    companion object {
        private const val MOST_BYTES = 4L * 1024 * 1024
        private const val LENGTH_BYTES = 8
        private val KINDS = mapOf("F32" to DType.FLOAT32, "I32" to DType.INT32)

        /** Read and check the header. Throws InvalidRecord, IOException. */
        fun read(channel: FileChannel, path: Path): SafetensorsHeader {
            val length = lengthOf(channel, path)
            val text = ByteBuffer.allocate(length.toInt())
            readFully(channel, LENGTH_BYTES.toLong(), text)
            val entries = decode(text.array(), "safetensors file", path.toString()) { entriesOf(this) }
            val dataStart = LENGTH_BYTES + length
            checkLayout(entries, channel.size() - dataStart, path)
            return SafetensorsHeader(entries, dataStart)
        }

        private fun lengthOf(channel: FileChannel, path: Path): Long {
            if (channel.size() < LENGTH_BYTES) throw broken(path, "it has ${channel.size()} bytes")
            val bytes = ByteBuffer.allocate(LENGTH_BYTES).order(ByteOrder.LITTLE_ENDIAN)
            readFully(channel, 0, bytes)
            val length = bytes.getLong(0)
            val most = channel.size() - LENGTH_BYTES
            if (length !in 0..most) throw broken(path, "its header leads past its end")
            if (length > MOST_BYTES) throw broken(path, "its header has $length bytes, more than $MOST_BYTES")
            return length
        }

        private fun entriesOf(value: Value): List<SafetensorsEntry> =
            value.map { this }.mapNotNull { (name, member) ->
                if (name == "__metadata__") metadata(member) else entryOf(name, member)
            }

        /** Notes of whoever wrote the file: text by name, of no meaning here. */
        private fun metadata(value: Value): SafetensorsEntry? {
            value.map { text() }
            return null
        }

        private fun entryOf(name: String, value: Value): SafetensorsEntry =
            value.record {
                val kind = need("dtype").text()
                val dtype = KINDS[kind] ?: throw value.broken("'$name' holds $kind, plans F32 and I32 only")
                val shape = need("shape").list { int() }
                val offsets = need("data_offsets").list { integer() }
                if (offsets.size != 2) throw value.broken("'$name' has ${offsets.size} offsets")
                val entry = SafetensorsEntry(name, dtype, shape, offsets[0], offsets[1])
                if (entry.end - entry.begin != sizeOf(value, shape)) {
                    throw value.broken("'$name' has ${entry.end - entry.begin} bytes for the shape $shape")
                }
                entry
            }

        private fun sizeOf(value: Value, shape: List<Int>): Long {
            var size = 4L
            for (length in shape) {
                if (length < 0 || size > Int.MAX_VALUE) throw value.broken("no tensor has the shape $shape")
                size *= length
            }
            if (size > Int.MAX_VALUE) throw value.broken("a tensor of the shape $shape is too large")
            return size
        }

        private fun checkLayout(entries: List<SafetensorsEntry>, dataBytes: Long, path: Path) {
            var end = 0L
            for (entry in entries.sortedWith(compareBy({ it.begin }, { it.end }))) {
                val begin = entry.begin
                if (begin != end) throw broken(path, "'${entry.name}' begins at $begin where $end was due")
                end = entry.end
            }
            if (end != dataBytes) throw broken(path, "its tensors have $end bytes, the file $dataBytes")
        }

        private fun broken(path: Path, what: String) =
            InvalidRecord("$path: not a valid safetensors file: $what")
    }
}
