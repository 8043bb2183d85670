package org.ondeviceprofiler.core

/** One tensor of a safetensors file: its bytes are `begin` until `end` behind the header. */
internal data class SafetensorsEntry(
    val name: String,
    val dtype: DType,
    val shape: List<Int>,
    val begin: Long,
    val end: Long,
)
