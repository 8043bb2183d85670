package org.ondeviceprofiler.core

import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.Paths
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test
import org.junit.rules.TemporaryFolder

class WorkTest {
    @get:Rule
    val folder = TemporaryFolder()

    private val storage: Path get() = folder.root.toPath()
    private val clock = FakeClock()
    private val cancelled = Signal()
    private var shade = 0f

    private fun shaded() = GraphCall { listOf(Tensor.of(FloatArray(3 * 64 * 64) { shade }, 1, 3, 64, 64)) }

    private fun job(change: (Job) -> Job = { it }): Job = change(smallJob(storage))

    private fun run(job: Job, engine: Engine = FakeEngine(clock, COSTS), shell: FakeShell = FakeShell(clock, engine)): List<Event> {
        val path = storage.resolve("events.jsonl")
        Work(job, DeviceFiles(storage, Paths.get("/")), Journal(path, job.jobId, clock), shell, cancelled).run()
        return Files.readAllLines(path).map { decode(it.toByteArray(), "Event", "journal", Event::read) }
    }

    private fun stop(events: List<Event>): Stop = events.last() as Stop

    @Test
    fun `a job makes its images in the order of its phases and ends well`() {
        val events = run(job { it.copy(warmups = 2, repeats = 3, observerPairs = 2) })
        val images = events.filterIsInstance<IterationDone>()
        val names = listOf("cold-0", "warmup-0", "warmup-1", "timed-0", "timed-1", "timed-2") + (0..3).map { "observer-$it" }
        assertEquals(names, images.map { "${it.phase.word}-${it.iteration}" })
        assertEquals(listOf(true, false, false, true), images.takeLast(4).map { it.traced })
        assertTrue(images.all { it.durationNs == 2_420_000L && it.durationNs == it.stages.sumOf { stage -> stage.durationNs } })
        assertNull(images.first().gapNs)
        assertEquals(images[1].startBootNs - images[0].startBootNs - images[0].durationNs, images[1].gapNs)
        assertEquals(Outcome.COMPLETED, stop(events).outcome)
        assertEquals(listOf(null, null, null), listOf(stop(events).reason, stop(events).stage, stop(events).component))
    }

    @Test
    fun `a journal begins with idle memory and a cool canary, and names each load before it`() {
        val events = run(job())
        assertTrue(events[0] is Idle)
        assertEquals(CanaryMoment.COOL, (events[1] as CanaryDone).moment)
        val begin = events[2] as Begin
        assertEquals(listOf(Phase.LOAD, null, "load", "text_encoder"), listOf(begin.phase, begin.iteration, begin.stage, begin.component))
        assertEquals("text_encoder", (events[3] as LoadDone).component)
    }

    @Test
    fun `a deterministic model keeps its image once, another each image up to a limit`() {
        val changing = FakeEngine(clock, answers = mapOf("decoder" to GraphCall { shaded().call(it).also { shade += 1 } }))
        val kept = run(job { it.copy(repeats = 12) }, changing).filterIsInstance<Artifact>()
        assertEquals(8, kept.size)
        val bytes = Files.readAllBytes(storage.resolve(kept[1].path))
        assertArrayEquals("P6\n64 64\n255\n".toByteArray() + ByteArray(3 * 64 * 64) { 1 }, bytes)
        assertEquals(kept[1].sha256, sha256Of(storage.resolve(kept[1].path)))
    }

    @Test
    fun `the canary runs between images when it is due, and never within pairs`() {
        val events = run(job { it.copy(repeats = 4, observerPairs = 1, sampling = Sampling(20, 1000, 4)) })
        val between = events.filterIsInstance<CanaryDone>().filter { it.moment == CanaryMoment.BETWEEN }
        assertEquals(3, between.size)
        assertFalse(events.dropWhile { (it as? IterationDone)?.phase != Phase.OBSERVER }.any { it is CanaryDone })
    }

    @Test
    fun `an image that is not finite is the model's failure`() {
        shade = Float.NaN
        val stop = stop(run(job(), FakeEngine(clock, answers = mapOf("decoder" to shaded()))))
        assertEquals(Outcome.FAILED, stop.outcome)
        assertEquals("broken_image: the image has values that are not finite", stop.reason)
    }

    @Test
    fun `an image of another size than the bundle's is the model's failure`() {
        val small = GraphCall { listOf(Tensor.of(FloatArray(3 * 4), 1, 3, 2, 2)) }
        val stop = stop(run(job(), FakeEngine(clock, answers = mapOf("decoder" to small))))
        assertEquals("broken_image: the image has the shape [2, 2], its bundle says [64, 64]", stop.reason)
    }

    @Test
    fun `a load that fails names its component and the engine's reason`() {
        val engine = FakeEngine(clock, broken = mapOf("decoder" to EngineFailureReason.LOAD_FAILED))
        val stop = stop(run(job(), engine))
        assertEquals("load_failed: decoder: as the test wants it", stop.reason)
        assertEquals(listOf("load", "decoder"), listOf(stop.stage, stop.component))
    }

    @Test
    fun `of several components in a stage the one that fails is named`() {
        val failing = GraphCall { throw EngineFailure(EngineFailureReason.OUT_OF_MEMORY, "guide_step", "no room") }
        val stop = stop(run(job(), FakeEngine(clock, answers = mapOf("guide_step" to failing))))
        assertEquals(listOf("out_of_memory: guide_step: no room", "denoise", "guide_step"), listOf(stop.reason, stop.stage, stop.component))
    }

    @Test
    fun `memory, disk and bugs of the runner are told apart`() {
        val reasons = listOf<Throwable>(OutOfMemoryError(), IOException("No space left on device"), IllegalStateException("odd"))
            .map { error ->
                Files.deleteIfExists(storage.resolve("events.jsonl"))
                val stop = stop(run(job(), FakeEngine(clock, answers = mapOf("decoder" to GraphCall { throw error }))))
                "${stop.outcome.word} ${stop.reason}"
            }
        val expected = listOf(
            "failed out_of_memory: the runner could not allocate",
            "aborted storage: No space left on device, on the device",
            "failed runner_error: IllegalStateException: odd",
        )
        assertEquals(expected, reasons)
    }

    @Test
    fun `other inputs, other bundles and broken plans are refused before anything is loaded`() {
        val wrong = mapOf<String, (Job) -> Job>(
            "is not the input file that the job names" to { it.copy(inputs = it.inputs.copy(sha256 = "0")) },
            "is not the bundle that the job names" to { it.copy(bundleSha256 = "0") },
            "holds no bundle" to { it.copy(bundle = "/nowhere") },
            "it takes 0 steps" to { it.copy(plan = it.plan.copy(steps = 0)) },
            "has no input 'mask'" to { it.copy(plan = it.plan.copy(inputs = it.plan.inputs + Port("mask", DType.INT32, listOf(1)))) },
            "'tokens' is int32 [1, 16], the plan takes int32 [1, 8]" to
                { it.copy(plan = it.plan.copy(inputs = listOf(Port("tokens", DType.INT32, listOf(1, 8))))) },
        )
        for ((words, change) in wrong) {
            Files.deleteIfExists(storage.resolve("events.jsonl"))
            val events = run(job(change))
            assertEquals(words, Outcome.REFUSED, stop(events).outcome)
            assertTrue(stop(events).reason.orEmpty(), words in stop(events).reason.orEmpty())
            assertTrue(events.none { it is Begin })
        }
    }

    @Test
    fun `a file that is not there is told as the device's storage`() {
        val stop = stop(run(job { it.copy(inputs = InputFile("nothing", "0")) }))
        assertEquals(Outcome.ABORTED, stop.outcome)
        assertTrue(stop.reason.orEmpty().startsWith("storage: No such file or directory"))
    }

    @Test
    fun `a cancelled job is interrupted before its first load`() {
        cancelled.set()
        val engine = FakeEngine(clock)
        assertEquals(listOf<Any?>(Outcome.INTERRUPTED, "cancelled"), stop(run(job(), engine)).let { listOf(it.outcome, it.reason) })
        assertTrue(engine.asked.isEmpty())
    }

    @Test
    fun `a tensor is hashed by its bytes, and no picture is kept`() {
        val plan = Examples.plan().let { it.copy(body = listOf(it.body[0], Output("embedding", "finish", Media.TENSOR))) }
        val events = run(job { it.copy(plan = plan) })
        assertEquals(Outcome.COMPLETED, stop(events).outcome)
        assertTrue(events.none { it is Artifact })
        val infinite = GraphCall { listOf(Tensor.of(FloatArray(1024) { Float.POSITIVE_INFINITY }, 1, 16, 64)) }
        Files.delete(storage.resolve("events.jsonl"))
        val broken = run(job { it.copy(plan = plan) }, FakeEngine(clock, answers = mapOf("text_encoder" to infinite)))
        assertEquals("broken_image: the output has values that are not finite", stop(broken).reason)
    }

    @Test
    fun `samples are those of the job's intervals, with the reasons of what is missing`() {
        val events = run(job { it.copy(repeats = 3) }, FakeEngine(clock, mapOf("denoiser" to 500 * NS_PER_MS)))
        val traces = events.filterIsInstance<Trace>()
        val times = traces.flatMap { it.memory }.map { it.deviceBootNs }
        assertTrue(times.zipWithNext().all { (a, b) -> b - a == 20 * NS_PER_MS })
        assertTrue("temperature_millicelsius" in traces.first().missing)
    }

    @Test
    fun `an untethered job waits for the cable to be pulled, and rests before its timed images`() {
        val shell = FakeShell(clock, FakeEngine(clock, COSTS))
        shell.probes.battery = BatteryReading(null, null, null, null, null, null, 2)
        clock.after(30 * NS_PER_S) { shell.probes.battery = shell.probes.battery.copy(plugged = 0) }
        val unplugNs = clock.bootNs() + 30 * NS_PER_S
        val events = run(job { it.copy(untethered = true, restS = 10.0, warmups = 1) }, shell.engine, shell)
        val rest = events.filterIsInstance<Rest>().single()
        assertTrue(rest.startBootNs - unplugNs in 0..NS_PER_S)
        assertEquals(10 * NS_PER_S, rest.endBootNs - rest.startBootNs)
        assertEquals(Phase.WARMUP, (events.takeWhile { it != rest }.last { it is IterationDone } as IterationDone).phase)
        val told = events.filterIsInstance<Waiting>().map { it.reason }.distinct()
        val unplug = "unplug the device: the timed images are to run on its battery"
        assertEquals(listOf(unplug, "a rest of 10 s, as a baseline for energy"), told)
    }

    @Test
    fun `a cable that stays, or cannot be told, ends an untethered job`() {
        val reasons = mapOf(
            2L to "not_ready: still on external power after 600 s of waiting",
            null to "not_ready: the device does not tell whether it is on external power",
        )
        for ((plugged, reason) in reasons) {
            Files.deleteIfExists(storage.resolve("events.jsonl"))
            val shell = FakeShell(clock, FakeEngine(clock))
            shell.probes.battery = BatteryReading(null, null, null, null, null, null, plugged)
            val stop = stop(run(job { it.copy(untethered = true) }, shell.engine, shell))
            assertEquals(listOf<Any?>(Outcome.ABORTED, reason), listOf(stop.outcome, stop.reason))
        }
    }

    private companion object {
        val COSTS = mapOf("text_encoder" to 100_000L, "denoiser" to 1_000_000L, "guide_step" to 10_000L, "decoder" to 300_000L)
    }
}
