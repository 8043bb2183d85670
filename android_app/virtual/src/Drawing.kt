package org.ondeviceprofiler.virtual

import java.util.SplittableRandom
import kotlin.math.hypot
import kotlin.math.min
import org.ondeviceprofiler.core.DType
import org.ondeviceprofiler.core.Port
import org.ondeviceprofiler.core.Tensor

private const val LEAST_SIDE = 16
private const val INTEGERS = 1000

/** Draw a tensor for a port: a picture where one fits, else numbers between -1 and 1, or small integers. */
internal fun drawn(port: Port, seed: Long): Tensor {
    val random = SplittableRandom(seed)
    val tensor = Tensor.allocate(port.dtype, port.shape)
    when {
        port.dtype == DType.INT32 -> tensor.ints.let { while (it.hasRemaining()) it.put(random.nextInt(INTEGERS)) }
        isPicture(port) -> draw(tensor, port.shape[2], port.shape[3], random)
        else -> tensor.floats.let { while (it.hasRemaining()) it.put((2 * random.nextDouble() - 1).toFloat()) }
    }
    return tensor
}

private fun isPicture(port: Port): Boolean =
    port.shape.size == 4 && port.shape.take(2) == listOf(1, 3) && port.shape.drop(2).all { it >= LEAST_SIDE }

/** Draw a disc before a gradient, with some noise: 0 to 255, and never blank. */
private fun draw(tensor: Tensor, height: Int, width: Int, random: SplittableRandom) {
    val (centreX, centreY) = random.nextDouble() * width to random.nextDouble() * height
    val radius = min(height, width) * (0.2 + 0.2 * random.nextDouble())
    val values = tensor.floats
    repeat(3) {
        val (disc, slant) = 255 * random.nextDouble() to random.nextDouble()
        for (y in 0 until height) {
            for (x in 0 until width) {
                val ground = 255 * (slant * x / width + (1 - slant) * y / height)
                val inDisc = hypot(x - centreX, y - centreY) < radius
                val value = (if (inDisc) disc else ground) + 8 * random.nextDouble() - 4
                values.put(value.coerceIn(0.0, 255.0).toFloat())
            }
        }
    }
}
