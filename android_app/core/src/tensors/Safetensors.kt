package org.ondeviceprofiler.core

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.Path
import java.nio.file.StandardOpenOption

/** Read every tensor of a safetensors file. Throws InvalidRecord where it breaks the format, IOException. */
internal fun readSafetensors(path: Path): Map<String, Tensor> =
    FileChannel.open(path, StandardOpenOption.READ).use { channel ->
        val header = SafetensorsHeader.read(channel, path)
        header.entries.associate { it.name to tensorOf(channel, header.dataStart, it) }
    }

private fun tensorOf(channel: FileChannel, dataStart: Long, entry: SafetensorsEntry): Tensor {
    val tensor = Tensor.allocate(entry.dtype, entry.shape)
    readFully(channel, dataStart + entry.begin, tensor.data)
    return tensor
}

/** Fill a buffer from a position on. Throws InvalidRecord where the file ends before. */
internal fun readFully(channel: FileChannel, position: Long, buffer: ByteBuffer) {
    var at = position
    while (buffer.hasRemaining()) {
        val count = channel.read(buffer, at)
        if (count < 0) throw InvalidRecord("it ends too early")
        at += count
    }
}
