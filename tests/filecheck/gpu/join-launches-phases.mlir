// PASSES: join-launches
//
// The second kernel reads what the first one stores, and the third one what the second one does. The
// first launch clears what the blocks of the other are counted with.

// CHECK:       polyblocks.arguments = [
// CHECK-SAME:    shape = array<i64: 320>
// CHECK:       polyblocks.launches = [
// CHECK-SAME:    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}, {workspace = 192 : i64}], block = [32, 1, 1], grid = [3, 1, 1], kernel = "first_joined_1"}
// CHECK-SAME:    {arguments = [{workspace = 0 : i64}, {workspace = 64 : i64}, {workspace = 64 : i64}, {workspace = 128 : i64}, {workspace = 192 : i64}], block = [32, 1, 1], grid = [5, 1, 1], kernel = "second_joined_2"
// CHECK-SAME:    waits
// CHECK:       gpu.func @first_joined_1(
// CHECK:         memref.store %c0_i32, %{{.*}} : memref<32xi32>
// CHECK:       gpu.func @second_joined_2(%[[X:.*]]: memref<2xf32> {llvm.noalias, llvm.readonly}, %[[Y:.*]]: memref<3xf32>, %[[SAME:.*]]: memref<3xf32>, %[[Z:.*]]: memref<2xf32>, %[[C:.*]]: memref<2xi32>) workgroup(%[[T:.*]] : memref<1xi32, #gpu.address_space<workgroup>>)
// CHECK:         scf.if
// CHECK:           %[[N:.*]] = memref.atomic_rmw addi %{{.*}}, %[[C]][%c0
// CHECK:           memref.store %[[N]], %[[T]]
// CHECK:         gpu.barrier
// CHECK:         %[[MINE:.*]] = memref.load %[[T]]
// CHECK:         %[[B:.*]] = arith.index_cast %[[MINE]]
// CHECK:         arith.cmpi ult, %[[B]], %c3
// CHECK:           memref.store %{{.*}}, %[[Y]]
// CHECK:           gpu.barrier
// CHECK:           scf.if
// CHECK:             llvm.fence release
// CHECK:             memref.atomic_rmw addi %c1{{.*}}, %[[C]][%c1
// CHECK:         } else {
// CHECK:           %[[OWN:.*]] = arith.subi %[[B]], %c3
// CHECK:           scf.if
// CHECK:             scf.while
// CHECK:               %[[DONE:.*]] = memref.atomic_rmw addi %c0{{.*}}, %[[C]][%c1
// CHECK:               %[[SOME:.*]] = arith.cmpi ult, %[[DONE]], %c3
// CHECK:               scf.condition(%[[SOME]])
// CHECK:             llvm.fence acquire
// CHECK:           gpu.barrier
// CHECK:           memref.load %[[SAME]][%[[OWN]]]
// CHECK:           memref.store %{{.*}}, %[[Z]]
// CHECK-NOT:       llvm.fence
module attributes {gpu.container_module, polyblocks.arguments = [
    {constant = false, dtype = "float32", name = "x", role = "input", shape = array<i64: 2>, strides = array<i64: 1>, updates = -1 : i64},
    {constant = false, dtype = "int8", name = "workspace", role = "workspace", shape = array<i64: 136>, strides = array<i64: 1>, updates = -1 : i64}], polyblocks.launches = [
    {arguments = [{argument = 0 : i64}, {workspace = 0 : i64}], block = [32, 1, 1], grid = [2, 1, 1], kernel = "first"},
    {arguments = [{workspace = 0 : i64}, {workspace = 64 : i64}], block = [32, 1, 1], grid = [3, 1, 1], kernel = "second"},
    {arguments = [{workspace = 64 : i64}, {workspace = 128 : i64}], block = [32, 1, 1], grid = [2, 1, 1], kernel = "third"}]} {
  gpu.module @kernels {
    gpu.func @first(%x: memref<2xf32> {llvm.noalias, llvm.readonly}, %y: memref<2xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["a x.py:1"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<2xf32>
      memref.store %v, %y[%b] : memref<2xf32>
      gpu.return
    }
    gpu.func @second(%x: memref<2xf32> {llvm.noalias, llvm.readonly}, %y: memref<3xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 3, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["b x.py:2"]} {
      %c0 = arith.constant 0 : index
      %b = gpu.block_id x
      %v = memref.load %x[%c0] : memref<2xf32>
      memref.store %v, %y[%b] : memref<3xf32>
      gpu.return
    }
    gpu.func @third(%x: memref<3xf32> {llvm.noalias, llvm.readonly}, %y: memref<2xf32>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, polyblocks.estimate = {bound = "main", bytes = {main = 8 : i64}, flops = 0 : i64, floor_bytes = 8 : i64, iterations = 2 : i64, moved_bytes = 8 : i64, predicted_seconds = 1.0e-6 : f64, seconds = {main = 1.0e-6 : f64}}, polyblocks.kind = "pointwise", polyblocks.resident = 1 : i32, polyblocks.sources = ["c x.py:3"]} {
      %b = gpu.block_id x
      %v = memref.load %x[%b] : memref<3xf32>
      memref.store %v, %y[%b] : memref<2xf32>
      gpu.return
    }
  }
}
