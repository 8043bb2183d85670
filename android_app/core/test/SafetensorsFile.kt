package org.ondeviceprofiler.core

import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** Write a safetensors file of these tensors, in order. */
internal fun safetensors(tensors: Map<String, Tensor>): ByteArray {
    var at = 0
    val header = tensors.mapValues { (_, tensor) ->
        val kind = if (tensor.dtype == DType.FLOAT32) "F32" else "I32"
        val end = at + tensor.data.capacity()
        jsonOf("dtype" to kind, "shape" to tensor.shape, "data_offsets" to listOf(at, end)).also { at = end }
    }
    val out = ByteArrayOutputStream()
    out.write(safetensors(JsonObject(header).write(), ByteArray(0)))
    for (tensor in tensors.values) out.write(ByteArray(tensor.data.capacity()).also { tensor.data.get(it) })
    return out.toByteArray()
}

/** Write a safetensors file with this header, whatever it says. */
internal fun safetensors(header: String, data: ByteArray): ByteArray {
    val text = header.toByteArray()
    val length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(text.size.toLong()).array()
    return length + text + data
}
