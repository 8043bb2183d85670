package org.ondeviceprofiler.core

/** Round a float image [1, 3, height, width] of 0–255 to uint8 rows, halves to even. Throws BrokenImage. */
internal fun finishImage(image: Tensor): Image {
    val shape = image.shape
    if (image.dtype != DType.FLOAT32 || shape.size != 4 || shape[0] != 1 || shape[1] != 3) {
        throw BrokenImage("the image has the shape $shape, not [1, 3, height, width]")
    }
    val (height, width) = shape[2] to shape[3]
    val plane = height * width
    val pixels = ByteArray(3 * plane)
    val values = FloatArray(plane)
    val source = image.floats
    for (channel in 0 until 3) {
        source.get(values)
        for (index in 0 until plane) pixels[3 * index + channel] = Math.rint(values[index].toDouble()).toInt().toByte()
    }
    return Image(pixels, height, width, image)
}

/** Throw BrokenImage where a value is not finite; integers always are. */
internal fun checkFinite(tensor: Tensor, what: String) {
    if (tensor.dtype != DType.FLOAT32) return
    val values = tensor.floats
    while (values.hasRemaining()) {
        if (!values.get().isFinite()) throw BrokenImage("the $what has values that are not finite")
    }
}
