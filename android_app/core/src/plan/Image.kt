package org.ondeviceprofiler.core

/** A finished image: `pixels` are uint8 rows [height, width, 3], from the float image [1, 3, height, width]. */
internal class Image(val pixels: ByteArray, val height: Int, val width: Int, val floatImage: Tensor) : Product
