package org.ondeviceprofiler.core

import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

class FinishingTest {
    @Test
    fun `halves are rounded to even and channels are woven`() {
        val image = Tensor.of(floatArrayOf(0.5f, 1.5f, 2.5f, 254.5f, 0f, 255f), 1, 3, 1, 2)
        assertArrayEquals(byteArrayOf(0, 2, 0, 2, 254.toByte(), 255.toByte()), finishImage(image).pixels)
    }

    @Test
    fun `other shapes and numbers are no image`() {
        for (shape in listOf(intArrayOf(1, 4, 1, 1), intArrayOf(2, 3, 1, 1), intArrayOf(3, 1, 1), intArrayOf())) {
            val size = shape.fold(1) { product, length -> product * length }
            val error = assertThrows(BrokenImage::class.java) { finishImage(Tensor.of(FloatArray(size), *shape)) }
            assertEquals("the image has the shape ${shape.toList()}, not [1, 3, height, width]", error.message)
        }
        assertThrows(BrokenImage::class.java) { finishImage(Tensor.of(IntArray(3), 1, 3, 1, 1)) }
    }

    @Test
    fun `NaN and infinity are found, integers never are`() {
        for (value in listOf(Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY)) {
            assertThrows(BrokenImage::class.java) { checkFinite(Tensor.of(floatArrayOf(1f, value), 2), "image") }
        }
        checkFinite(Tensor.of(floatArrayOf(1f, -Float.MAX_VALUE), 2), "image")
        checkFinite(Tensor.of(intArrayOf(Int.MAX_VALUE), 1), "output")
    }
}
