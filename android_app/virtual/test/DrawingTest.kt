package org.ondeviceprofiler.virtual

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test
import org.ondeviceprofiler.core.DType
import org.ondeviceprofiler.core.Port
import org.ondeviceprofiler.core.Tensor

class DrawingTest {
    private fun floats(tensor: Tensor): List<Float> = tensor.floats.let { view -> List(view.limit()) { view.get(it) } }

    @Test
    fun `a picture lies in 0 to 255 and is not blank`() {
        for (seed in 0L until 20) {
            val values = floats(drawn(Port("image", DType.FLOAT32, listOf(1, 3, 32, 48)), seed))
            assertTrue(values.all { it in 0f..255f })
            val mean = values.average()
            assertTrue(values.sumOf { (it - mean) * (it - mean) } / values.size > 100)
        }
    }

    @Test
    fun `the same inputs give the same outputs, others give others`() {
        fun made(first: Int): List<Float> {
            val feeds = mapOf("tokens" to Tensor.of(intArrayOf(first, 2, 3), 1, 3))
            return floats(drawn(Port("states", DType.FLOAT32, listOf(1, 7)), fingerprint("encoder", "encode", feeds)))
        }
        assertEquals(made(1), made(1))
        assertNotEquals(made(1), made(2))
    }
}
