"""Which replacements are made in which module of which library, as soon as the module is imported."""

from __future__ import annotations

from types import ModuleType
from typing import Callable, Dict, List

from .. import network
from ..compilers import Replacement
from . import (
    adapters,
    diffusers_models,
    hub,
    image_models,
    saved_tensors,
    timm_models,
    trained_tokenizers,
    transformers_inputs,
    transformers_models,
)

IN_LIBRARY: Dict[str, Callable[[ModuleType], List[Replacement]]] = {
    "huggingface_hub.constants": network.offline,
    "huggingface_hub.file_download": hub.file_download,
    "huggingface_hub.hf_api": hub.api,
    "huggingface_hub._login": hub.login,
    "transformers.configuration_utils": transformers_models.configurations,
    "transformers.modeling_utils": transformers_models.modeling,
    "transformers.models.auto.modeling_auto": transformers_models.auto_models,
    "transformers.models.auto.configuration_auto": transformers_models.auto_config,
    "transformers.models.auto.tokenization_auto": transformers_inputs.tokenizers,
    "transformers.tokenization_utils_base": transformers_inputs.tokenizers,
    "transformers.models.auto.image_processing_auto": transformers_inputs.image_processors,
    "transformers.models.auto.video_processing_auto": transformers_inputs.image_processors,
    "transformers.image_processing_base": transformers_inputs.image_processors,
    "transformers.models.auto.feature_extraction_auto": transformers_inputs.auto_feature_extractors,
    "transformers.models.auto.processing_auto": transformers_inputs.auto_feature_extractors,
    "transformers.feature_extraction_utils": transformers_inputs.feature_extractors,
    "transformers.processing_utils": transformers_inputs.processors,
    "transformers.pipelines": transformers_inputs.pipelines,
    "transformers.generation.utils": transformers_models.generation,
    "safetensors.torch": saved_tensors.safetensors,
    "tokenizers": trained_tokenizers.tokenizers,
    "timm.models._builder": timm_models.builder,
    "timm.models._helpers": timm_models.checkpoints,
    "timm.models._hub": timm_models.hub_configs,
    "torchvision.models._api": image_models.torchvision_weights,
    "torchvision._internally_replaced_utils": image_models.torchvision_urls,
    "open_clip.pretrained": image_models.open_clip_weights,
    "open_clip.factory": image_models.open_clip_loading,
    "segmentation_models_pytorch.encoders": image_models.segmentation_weights,
    "efficientnet_pytorch.utils": image_models.efficientnet_weights,
    "diffusers.models.modeling_utils": diffusers_models.modeling,
    "diffusers.schedulers.scheduling_utils": diffusers_models.schedulers,
    "diffusers.pipelines.pipeline_utils": diffusers_models.pipelines,
    "diffusers.pipelines.auto_pipeline": diffusers_models.auto_pipelines,
    "peft.utils.save_and_load": adapters.weights,
    "peft.peft_model": adapters.model,
}
