package org.ondeviceprofiler.core

import java.security.MessageDigest

/** Hash what an iteration made: an image's pixels, or a tensor's bytes. */
internal fun digestOf(product: Product): String {
    val digest = MessageDigest.getInstance("SHA-256")
    when (product) {
        is Image -> digest.update(product.pixels)
        is TensorProduct -> digest.update(product.tensor.data)
    }
    return hex(digest.digest())
}
