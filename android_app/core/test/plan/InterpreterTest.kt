package org.ondeviceprofiler.core

import java.nio.file.Paths
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class InterpreterTest {
    private val clock = FakeClock()
    private val costs = mapOf("text_encoder" to 100L, "denoiser" to 1000L, "guide_step" to 10L, "decoder" to 300L)
    private val inputs = mapOf("tokens" to Tensor.of(IntArray(16), 1, 16), "noise" to Tensor.of(FloatArray(256) { 2f }, 1, 4, 8, 8))

    private class Notes(private val cancelAt: Int = 0) : Watcher {
        val begun = ArrayList<Pair<String, String?>>()
        val loads = HashMap<String, Long>()
        private var checks = 0

        override fun begin(stage: String, component: String?) {
            begun.add(stage to component)
        }

        override fun loaded(component: String, durationNs: Long) {
            loads[component] = durationNs
        }

        override fun check() {
            checks += 1
            if (checks == cancelAt) throw Cancelled()
        }
    }

    private fun interpreter(engine: Engine, plan: Plan = Examples.plan(), watcher: Watcher = Notes()): Interpreter {
        val folder = Paths.get("nowhere")
        val constants = constantsOf(plan, folder)
        return Interpreter(plan, Examples.bundle().components, folder, constants, engine, watcher, clock)
    }

    private fun withLoop(change: (Loop) -> Loop): Plan {
        val plan = Examples.plan()
        return plan.copy(body = plan.body.map { if (it is Loop) change(it) else it })
    }

    @Test
    fun `prepare loads each component once and tells how long it took`() {
        val notes = Notes()
        val engine = FakeEngine(clock, mapOf("load decoder" to 70L))
        interpreter(engine, watcher = notes).prepare()
        assertEquals(listOf("text_encoder", "denoiser", "guide_step", "decoder").map { "load $it" }, engine.asked)
        assertEquals(mapOf("text_encoder" to 0L, "denoiser" to 0L, "guide_step" to 0L, "decoder" to 70L), notes.loads)
    }

    @Test
    fun `stage times are the clock's, add up, and hold a loop's rounds`() {
        val notes = Notes()
        val interpreter = interpreter(FakeEngine(clock, costs), watcher = notes).also { it.prepare() }
        notes.begun.clear()
        val iteration = interpreter.iterate(inputs)
        val times = listOf(
            StageTime("encode_text", 100, null),
            StageTime("denoise", 2020, listOf(1010, 1010)),
            StageTime("decode", 300, null),
            StageTime("finish", 0, null),
        )
        assertEquals(times, iteration.stages)
        assertEquals(iteration.endNs - iteration.startNs, times.sumOf { it.durationNs })
        val begun = listOf("encode_text" to "text_encoder", "denoise" to "denoiser", "decode" to "decoder", "finish" to null)
        assertEquals(begun, notes.begun)
    }

    @Test
    fun `a loop carries what its body emits, and hands out rows and rounds`() {
        val seen = ArrayList<Float>()
        val rows = ArrayList<Float>()
        val decoded = ArrayList<Float>()
        val denoise = GraphCall { feeds ->
            rows.add(feeds.getValue("timestep").floats.get(0))
            assertEquals(listOf(1), feeds.getValue("timestep").shape)
            listOf(feeds.getValue("latents"))
        }
        val step = GraphCall { feeds ->
            val latents = feeds.getValue("latents").floats
            seen.add(latents.get(0))
            listOf(Tensor.of(FloatArray(256) { latents.get(it) + 1 }, 1, 4, 8, 8))
        }
        val decode = GraphCall { feeds ->
            decoded.add(feeds.getValue("latents").floats.get(255))
            listOf(Tensor.of(FloatArray(3 * 64 * 64) { 7.5f }, 1, 3, 64, 64))
        }
        val engine = FakeEngine(clock, answers = mapOf("denoiser" to denoise, "guide_step" to step, "decoder" to decode))
        val interpreter = interpreter(engine).also { it.prepare() }
        repeat(2) {
            val image = interpreter.iterate(inputs).product as Image
            assertArrayEquals(ByteArray(3 * 64 * 64) { 8 }, image.pixels)
        }
        assertEquals(listOf(2f, 3f, 2f, 3f), seen)
        assertEquals(listOf(1000f, 500f, 1000f, 500f), rows)
        assertEquals(listOf(4f, 4f), decoded)
    }

    @Test
    fun `a loop may count, and gives its round as an int32`() {
        val rounds = ArrayList<Int>()
        val denoise = GraphCall { feeds ->
            rounds.add(feeds.getValue("timestep").ints.get(0))
            listOf(feeds.getValue("latents"))
        }
        val plan = withLoop { it.copy(over = OverCount(3), index = "timestep") }
            .let { it.copy(constants = it.constants + ("step_size" to Constant(DType.FLOAT32, listOf(1), listOf(1.0)))) }
        val interpreter = interpreter(FakeEngine(clock, answers = mapOf("denoiser" to denoise)), plan).also { it.prepare() }
        interpreter.iterate(inputs)
        assertEquals(listOf(0, 1, 2), rounds)
    }

    @Test
    fun `a cancel stops before the next call`() {
        val engine = FakeEngine(clock)
        val interpreter = interpreter(engine, watcher = Notes(cancelAt = 4 + 3)).also { it.prepare() }
        engine.asked.clear()
        assertThrows(Cancelled::class.java) { interpreter.iterate(inputs) }
        assertEquals(listOf("text_encoder", "denoiser"), engine.asked)
    }

    @Test
    fun `what a plan unloads is closed, and loaded anew for the next image`() {
        val plan = Examples.plan().let {
            val (encode, loop, decode, output) = it.body
            it.copy(body = listOf(Load("text_encoder"), encode, Unload("text_encoder"), loop, decode, output), prepare = it.prepare.drop(1))
        }
        val engine = FakeEngine(clock)
        val interpreter = interpreter(engine, plan).also { it.prepare() }
        repeat(2) { interpreter.iterate(inputs) }
        assertEquals(listOf("load text_encoder", "unload text_encoder").let { it + it }, engine.asked.filter { "load text" in it })
    }

    @Test
    fun `outputs of another number than the manifest lists are the engine's failure`() {
        val engine = FakeEngine(clock, answers = mapOf("decoder" to GraphCall { emptyList() }))
        val interpreter = interpreter(engine).also { it.prepare() }
        val failure = assertThrows(EngineFailure::class.java) { interpreter.iterate(inputs) }
        assertTrue(failure.message.orEmpty(), "gave 0 tensors, its manifest lists 1" in failure.message.orEmpty())
    }
}
